"""What a watcher makes of display events: the newest attempt of each execution, each piece once."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from waybook.events.display import Display, Shown, display_subject
from waybook.events.subjects import RunKey


def chunk(execution: str, attempt: int, offset: int) -> Shown:
    text = f"<{execution} {attempt}.{offset}>"
    return Shown(
        run="t/a/r1", step="s", execution=execution, action="2.1", attempt=attempt, offset=offset, event="TextChunk",
        body=msgspec.Raw(msgspec.json.encode({"text": text})),
    )  # fmt: skip


def text(execution: str, attempt: int, pieces: int) -> str:
    return "".join(f"<{execution} {attempt}.{offset}>" for offset in range(pieces))


@given(attempts=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data())
def test_a_step_that_is_tried_again_never_doubles_its_text(attempts: list[int], data: st.DataObject) -> None:
    """Whatever comes twice, late, or again after a pause: the text is that of the last attempt, once."""
    display = Display()
    sent: list[Shown] = []
    for attempt, pieces in enumerate(attempts, 1):
        for offset in range(pieces):
            sent.append(chunk("1:s:1.1", attempt, offset))
            display.take(sent[-1])
            display.take(chunk("1:other:1.1", 1, 0))
            for again in data.draw(st.lists(st.sampled_from(sent), max_size=3)):
                assert display.take(again) is None
    assert display.text("1:s:1.1") == text("1:s:1.1", len(attempts), attempts[-1])
    assert display.text("1:other:1.1") == "<1:other:1.1 1.0>"
    assert display.text("unknown") == ""


def test_a_new_attempt_is_told_apart_from_more_of_the_same() -> None:
    display = Display()
    assert [display.take(chunk("x", 1, 0)), display.take(chunk("x", 1, 2)), display.take(chunk("x", 2, 0))] == [
        "new",
        "new",
        "restarted",
    ]
    assert display.take(chunk("x", 1, 3)) is None, "a worker that was overtaken goes on showing"


def test_a_run_has_a_subject_of_its_own() -> None:
    assert display_subject(RunKey("t", "a", "r1")) == "trace.t.display.a.r1"
