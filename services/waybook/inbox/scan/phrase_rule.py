"""How a rule about an injection phrase is written.

In a pattern `~` is a gap of at most two words, `~~` one of at most four.
"""

import re

import msgspec


class PhraseRule(msgspec.Struct, frozen=True):
    """One rule. It is tried only where one of `anchors` stands in the text, which keeps the scan fast.

    `at_start`: it asks whether a line begins, so it gets the text with `|` at line ends. `hidden_only`: it is too
    weak for what a reader sees, and enough where text was hidden from the reader.
    """

    kind: str
    language: str
    anchors: tuple[str, ...]
    pattern: str
    at_start: bool = False
    hidden_only: bool = False


START = r"(?:^|[|.!?>:*\[(\"'-] ?)"
"""Where a line or a sentence begins."""
_SHORT = r"(?:[\s,\"'()*_:;/-]+\w+){0,4}?[\s,\"'()*_:;/-]+"
_TIGHT = r"(?:[\s,\"'()*_/-]+\w+){0,2}?[\s,\"'()*_/-]+"


def rule(kind: str, language: str, anchors: str, pattern: str, *, hidden_only: bool = False) -> PhraseRule:
    """A rule from its pattern; `anchors` are divided by commas."""
    at_start = START in pattern or "[|" in pattern
    pattern = pattern.replace("~~", _SHORT).replace("~", _TIGHT)
    return PhraseRule(kind, language, tuple(a.strip() for a in anchors.split(",")), pattern, at_start, hidden_only)


def override(language: str, verbs: str, before: str, nouns: str, *, noun_first: bool = False) -> PhraseRule:
    """`ignore ... previous ... instructions`, with the words in the order of the language.

    Anchored at the nouns: a text without any of them is not looked at.
    """
    rest = rf"(?:{nouns})~(?:{before})" if noun_first else rf"(?:{before})~(?:{nouns})"
    anchors = ",".join(sorted({re.split(r"[(\[\\?*]", n.strip())[0].rstrip("s") for n in nouns.split("|")}))
    return rule("override", language, anchors, rf"(?<!\w)(?:{verbs})~~(?:{rest})")
