"""What follows from a mail outside of Waybook: what is to be learnt from it, and where its answer is to be shown. Pure.

Nothing of it belongs to the run, so no step does it and nobody waits for it. It is read off the log by whoever does it
(`waybook events follow-ups`), as often as they like: each has an id, and the same id is the same thing.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from waybook.events import engine as e
from waybook.events.subjects import RunKey

Kind = Literal[
    "knowledge_extraction", "code_task", "timeline_mirror",
    "feedback_approved", "feedback_edited", "feedback_rejected", "outcome_bounced", "outcome_complained",
]  # fmt: skip

CLASSIFIED = frozenset({"E8", "E9"})
SENT, REJECTED = "E19", "E17"

WANTED = frozenset({"Transitioned", "EventPublished"})
"""Types of engine events that anything may follow from."""


class FollowUp(msgspec.Struct, frozen=True):
    """One thing to do, once: `id` names it. `event` is the event of the run that it follows from.

    - knowledge_extraction: the mail was classified and is no spam; what it says may be learnt. Once a mail
    - code_task: it asks for a feature
    - timeline_mirror: the answer left; wherever people look at conversations it may be shown
    - feedback_approved, feedback_edited: an answer that a person approved, or wrote, is leaving. Not before: what is called
      back within its undo window teaches nothing
    - feedback_rejected: a person refused the draft
    - outcome_bounced, outcome_complained: the answer came to a bad end
    """

    id: str
    kind: Kind
    run: str
    event: str


class _Due(msgspec.Struct, frozen=True):
    reply: dict[str, Any] | None = None
    source: str = "auto"
    edited: bool = False


class _Returned(msgspec.Struct, frozen=True):
    kind: Literal["bounced", "complained"]


def follow_ups(key: RunKey, names: Sequence[str], events: Sequence[e.EngineEvent]) -> tuple[FollowUp, ...]:
    """What follows from events of one commit of a mail's run; `names` are theirs. A retry repeats nothing."""
    found: list[FollowUp] = []
    for name, event in zip(names, events, strict=True):
        kinds: Iterator[Kind] = iter(())
        if isinstance(event, e.Transitioned):
            kinds = _of_move(event)
        elif isinstance(event, e.EventPublished):
            kinds = _of_fact(event)
        found += (FollowUp(f"{key}/{kind}", kind, str(key), name) for kind in kinds)
    return tuple(found)


def _of_move(event: e.Transitioned) -> Iterator[Kind]:
    if event.row in CLASSIFIED:
        yield "knowledge_extraction"
        classified = event.fields.get("classification") or {}
        if event.row == "E8" and classified.get("category") == "feature_request":
            yield "code_task"
    elif event.row == SENT:
        yield "timeline_mirror"
    elif event.row == REJECTED:
        yield "feedback_rejected"


def _of_fact(event: e.EventPublished) -> Iterator[Kind]:
    if event.event == "SendDue":
        due = msgspec.json.decode(event.payload, type=_Due)
        if due.reply is not None and due.source == "human":
            yield "feedback_approved"
            if due.edited:
                yield "feedback_edited"
    elif event.event == "ReplyReturned":
        yield "outcome_bounced" if _kind(event) == "bounced" else "outcome_complained"


def _kind(event: e.EventPublished) -> str:
    return msgspec.json.decode(event.payload, type=_Returned).kind
