"""Phrases that give orders to the machine behind the mailbox, in the languages that attacks come in.

Each rule is written as its words and compiled through the same fold as the text that it meets. A rule needs an order
together with what it is about: `ignore` alone, or a customer who is an admin, is no finding.
"""

import re
from collections.abc import Iterable
from functools import cache

import msgspec

from waybook.inbox.scan.fold import capped, disguises, fold, short_words
from waybook.inbox.scan.phrase_rule import PhraseRule
from waybook.inbox.scan.phrases_english import ENGLISH
from waybook.inbox.scan.phrases_europe import EUROPE
from waybook.inbox.scan.phrases_world import WORLD


class Phrase(msgspec.Struct, frozen=True):
    """A phrase that was found: the kind of order, its language, the words around it, and how it was disguised."""

    kind: str
    language: str
    excerpt: str
    disguise: str | None = None


class _Compiled(msgspec.Struct, frozen=True):
    rule: PhraseRule
    anchors: frozenset[str]
    pattern: re.Pattern[str]


@cache
def _compiled() -> tuple[_Compiled, ...]:
    return tuple(
        _Compiled(rule, frozenset(fold(a) for a in rule.anchors), re.compile(_fold_pattern(rule.pattern)))
        for rule in (*ENGLISH, *EUROPE, *WORLD)
    )


@cache
def _anchors(ascii_only: bool) -> tuple[str, ...]:
    """The anchors of all rules, each once."""
    found = sorted({a for entry in _compiled() for a in entry.anchors})
    return tuple(a for a in found if a.isascii() or not ascii_only)


def _fold_pattern(pattern: str) -> str:
    """The pattern with its letters folded; escapes such as `\\b` and its blanks stay as they are."""
    parts = re.split(r"(\\.|\s+)", pattern)
    return "".join(p if i % 2 else fold(p) for i, p in enumerate(parts))


def find_phrases(text: str, hidden: bool = False) -> list[Phrase]:
    """The phrases in `text`, disguised ones too. `hidden`: no reader sees it, so that less makes it an order."""
    text = capped(text)
    short = short_words(text)
    found = _search(fold(short), fold(" | ".join(line for line in short.split("\n") if line.strip())), hidden, None)
    for disguise, reading in disguises(text):
        found.extend(p for p in _search(reading, reading, hidden, disguise) if not _known(p, found))
    return found


def _known(phrase: Phrase, found: list[Phrase]) -> bool:
    return any(p.kind == phrase.kind and p.language == phrase.language for p in found)


def _search(folded: str, lines: str, hidden: bool, disguise: str | None) -> list[Phrase]:
    found: list[Phrase] = []
    present = {anchor for anchor in _anchors(folded.isascii()) if anchor in folded}
    if not present:
        return found
    for entry in _compiled():
        if (entry.rule.hidden_only and not hidden) or present.isdisjoint(entry.anchors):
            continue
        text = lines if entry.rule.at_start else folded
        if match := entry.pattern.search(text):
            excerpt = text[max(0, match.start() - 20) : match.end() + 40]
            found.append(Phrase(entry.rule.kind, entry.rule.language, excerpt[:200], disguise))
    return found


def has_override(texts: Iterable[str]) -> bool:
    """Whether any of `texts` holds an order to the machine: asked again over drafts and assembled context."""
    return any(find_phrases(text) for text in texts)
