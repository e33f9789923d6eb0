"""What an open run with nothing under way waits for: questions that nobody answered."""

import msgspec

from waybook.engine.definition import Definition
from waybook.engine.run import Run

ASKING = frozenset({"request", "delegation"})
"""Kinds of events that wait for an answer."""


class OpenRequest(msgspec.Struct, frozen=True):
    """A question that nobody answered yet: the event's name, which the answer's signal gives, and its type."""

    name: str
    event: str


def open_requests(definition: Definition, run: Run) -> tuple[OpenRequest, ...]:
    """The requests of this walk that are not answered, oldest first."""
    asked = [p for t, kind in definition.kinds.items() if kind in ASKING for p in run.visible.get(t, ())]
    asked.sort(key=lambda p: p.ordinal)
    return tuple(OpenRequest(p.name, p.event) for p in asked if p.name not in run.answered)
