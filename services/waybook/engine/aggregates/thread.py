"""`@thread`: the runs of a conversation, in the order in which they joined, and whether it is open."""

from typing import Any, Literal

import msgspec

from waybook.engine.context import changed
from waybook.engine.run import Run
from waybook.events import engine as e

Status = Literal["open", "resolved"]

_MEMBERS, _STATUS, _CHANGES = "members", "status", "context_changes"


class Thread(msgspec.Struct, frozen=True):
    """A conversation. `members` hold agent, run, message id and time of joining."""

    status: Status = "open"
    members: tuple[dict[str, Any], ...] = ()

    def newer_than(self, run: str) -> tuple[str, ...]:
        """Runs that joined after `run`. The run that the thread is named after never joins: all others are newer."""
        runs = [str(m["run"]) for m in self.members]
        return tuple(runs[runs.index(run) + 1 :] if run in runs else runs)


def thread_of(run: Run | None) -> Thread:
    """The conversation of a folded `@thread`; None: only the message that it is named after."""
    if run is None:
        return Thread()
    return Thread(run.fields.get(_STATUS, "open"), tuple(run.fields.get(_MEMBERS, ())))


def holds_member(run: Run, fact: e.ThreadJoined) -> bool:
    """Whether the run of this fact has joined already."""
    return any(m["agent"] == fact.agent and m["run"] == fact.run for m in run.fields.get(_MEMBERS, ()))


def holds_change(run: Run, fact: e.ThreadContextChanged) -> bool:
    """Whether this change of the context was applied already."""
    return _change(fact) in run.fields.get(_CHANGES, {})


def _change(fact: e.ThreadContextChanged) -> str:
    return f"{fact.agent}/{fact.run}/{fact.name}"


def fold_context(run: Run, event: e.ThreadContextChanged, name: str, at: int) -> None:
    run.fields[_CHANGES] = {**run.fields.get(_CHANGES, {}), _change(event): None}
    run.context = changed(run.context, event.changes)


def fold_joined(run: Run, event: e.ThreadJoined, name: str, at: int) -> None:
    member = {"agent": event.agent, "run": event.run, "message": event.message, "at": at}
    run.fields[_MEMBERS] = [*run.fields.get(_MEMBERS, ()), member]
    run.fields[_STATUS] = "open"  # a new message opens a closed thread


def fold_status(run: Run, event: e.ThreadStatusSet, name: str, at: int) -> None:
    run.fields[_STATUS] = event.status
