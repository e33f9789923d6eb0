"""Words of strangers on a terminal."""

import pytest

from waybook.cli.strangers import LEFT_TO_RIGHT, shown


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("bill_\u202efdp.exe", "bill_U+202Efdp.exe"),
        ("a\u2067b\u2069c", "aU+2067bU+2069c"),
        ("red\x1b[31m\ttab\r\nline\u2028x\x9b0", "red [31m tab  line x 0"),
        ("\u05e9\u05dc\u05d5\u05dd \u200f12", "\u05e9\u05dc\u05d5\u05dd \u200f12"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("\ud800", " "),
    ],
)
def test_turning_characters_are_written_out_and_honest_words_stay(text: str, seen: str) -> None:
    """Nothing that a mail holds reaches the terminal as a control."""
    assert shown(text) == seen


def test_right_to_left_words_are_kept_from_moving_their_neighbours() -> None:
    """Only where they are, and only on a terminal."""
    word = "\u05e9\u05dc\u05d5\u05dd"
    assert shown(word, marks=True) == f"{LEFT_TO_RIGHT}{word}{LEFT_TO_RIGHT}"
    assert shown("plain", marks=True) == "plain" and shown(word) == word
