"""Base classes of the typed events that agents exchange between their steps."""

from typing import ClassVar

import msgspec

Personal = msgspec.Meta(extra={"personal": True}, extra_json_schema={"x-personal": True})
"""Marks a field that holds personal data: `sender: Annotated[str, Personal]`. With a field cipher in the codec it
is stored encrypted (`waybook.events.codec`); without one the mark changes nothing."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that a step takes or returns. Subclass it with typed fields; the class name is the type's name.

    `SCHEMA` is the version of the fields' shape; raise it with an upcaster when the shape changes
    (`waybook.events.registry`). `BRANCH` names the field whose value labels the branch that begins with this event: what
    it triggers, and what comes of that, carries the label until branches are joined. None: it begins no branch.
    """

    SCHEMA: ClassVar[int] = 1
    BRANCH: ClassVar[str | None] = None


class StartEvent(Event, frozen=True, kw_only=True):
    """The event that a run begins with."""


class StopEvent(Event, frozen=True, kw_only=True):
    """The event that ends a run whose agent has no lifecycle table of its own."""


class ExternalEvent(Event, frozen=True, kw_only=True):
    """An event that may come from outside: an answer, a person's word. No step needs to return it."""


class DecisionEvent(ExternalEvent, frozen=True, kw_only=True):
    """What became of an approval that the run asked for. Only the engine publishes it: it cannot be signalled.

    Subclass it once for each question, since steps are found by exact type. Fields are filled by name, as far as a
    subclass has them: `approval`, `decision` (approved, rejected, expired), `by`, `reason`, `action`, `resource`,
    `scope`, `digest`, `received_at` (ms, UTC).
    """


class Decided(DecisionEvent, frozen=True, kw_only=True):
    """The ready-made answer for an agent that asks one question. `by` is None when nobody decided in time."""

    approval: str
    decision: str
    by: str | None = None
    reason: str | None = None
    digest: str = ""


class RequestEvent(Event, frozen=True, kw_only=True):
    """A question to somebody outside: a person, a bot. Its answer is an external event whose `signal` names it.

    `WITHIN_S`: how long an answer is waited for, None: without end. After that the run gets an Unanswered in its place, and
    every later answer is refused.
    """

    WITHIN_S: ClassVar[float | None] = None


class Unanswered(Event, frozen=True, kw_only=True):
    """Nobody answered a question in time: the request's name and type. Only the engine publishes it."""

    request: str
    event: str


class ExceptionEvent(Event, frozen=True, kw_only=True):
    """Stands for the end of a run by an error. The engine keeps failures itself; no step can take this one."""


class DisplayEvent(Event, frozen=True, kw_only=True):
    """Shown to clients, never stored in STATE and never an input of a step."""


class Origin(msgspec.Struct, frozen=True):
    """What was stored of an event whose class this process does not have; enough to store it again unchanged."""

    event: str
    schema: int
    payload: msgspec.Raw
    ancestors: tuple[str, ...] = ()

    def fields(self) -> dict[str, object]:
        """The fields as plain JSON values; ValueError when the payload is not an object."""
        return msgspec.json.decode(self.payload, type=dict[str, object])


class UnknownEvent(Event, frozen=True, kw_only=True):
    """An event of which neither the class nor an ancestor is known here."""

    stored_as: Origin
