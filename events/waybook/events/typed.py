"""Base classes of the typed events that agents exchange between their steps."""

from typing import ClassVar

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that a step takes or returns. Subclass it with typed fields; the class name is the type's name.

    `SCHEMA` is the version of the fields' shape; raise it with an upcaster when the shape changes
    (`waybook.events.registry`).
    """

    SCHEMA: ClassVar[int] = 1


class StartEvent(Event, frozen=True, kw_only=True):
    """The event that a run begins with."""


class StopEvent(Event, frozen=True, kw_only=True):
    """The event that ends a run whose agent has no lifecycle table of its own."""


class ExternalEvent(Event, frozen=True, kw_only=True):
    """An event that may come from outside: an answer, a person's word. No step needs to return it."""


class DisplayEvent(Event, frozen=True, kw_only=True):
    """Shown to clients, never stored in STATE and never an input of a step."""
