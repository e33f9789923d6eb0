"""A person wants the reply drafted anew, or one part of it: a new walk in which all else is kept (DESIGN 4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from waybook.engine.definition import Objection, Row
from waybook.engine.inputs import World
from waybook.engine.run import Action, Run
from waybook.inbox import events as ev
from waybook.inbox.approved import SEND

DRAFTING, JOINING = "draft", frozenset({"compose", "route"})


def _newest(run: Run) -> Iterator[Action]:
    """The newest attempt at each execution of the present walk."""
    walk = f"{run.walk}:"
    return (run.actions[action] for key, action in run.executions.items() if key.startswith(walk))


def _is_meant(action: Action, event: ev.RedraftAsked) -> bool:
    """Whether it is the draft, or one of the drafts, that is to be written anew. A single draft is that of intent 1."""
    if action.step != DRAFTING:
        return False
    return event.intent is None or (action.branch or "1") == str(event.intent)


def _possible(run: Run, event: ev.RedraftAsked, world: World) -> bool:
    """Whether there is such a draft, and no send of this walk is left half done: it would begin again."""
    ended = all(a.status == "completed" for a in _newest(run) if a.step == SEND)
    return ended and any(_is_meant(action, event) for action in _newest(run))


def _kept(run: Run, event: ev.RedraftAsked) -> list[str]:
    return [a.id for a in _newest(run) if a.step not in JOINING and not _is_meant(a, event)]


def _fields(run: Run, event: ev.RedraftAsked) -> Mapping[str, Any]:
    return {"cancel_reason": None, "redraft_by": event.by}


def _reason(run: Run, event: ev.RedraftAsked) -> str:
    which = f"the part for intent {event.intent}" if event.intent is not None else "the reply"
    return f"{event.by} wants {which} drafted anew" + (f": {event.reason}" if event.reason else "")


def why_not(run: Run) -> Objection | None:
    """What a person is told who asks for another draft where there is none to replace, or too late."""
    if run.ended or run.state == "draft_ready":
        return None
    return "not_draft_ready", f"the reply is {run.state}; only one that waits for a decision is drafted anew"


ROW = Row(
    "redraft",
    "draft_ready",
    "RedraftAsked",
    "drafting",
    guard=_possible,
    fields=_fields,
    reason=_reason,
    restart=True,
    direct=False,
    keeps=_kept,
)
"""The only way from a decision back to drafting: on a person's word about the draft, never by a direct call."""
