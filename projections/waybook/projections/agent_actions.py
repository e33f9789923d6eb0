"""The read model `agent_actions`: one row for each attempt at a step.

The table is `migrations/tables/0001_read_models.sql`, the statements are `agent_actions.sql`.

A row is `pending` while its execution is due and has not begun (offered, or its retry's timer has fired), or was
given back by a worker that stopped. It is `skipped` when it never came to an end for no fault of anybody: given back
and taken up by the next attempt, or due in a run or walk that ended first.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from waybook.engine.run import NO_PERSON
from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.projections.changes import ActionEnd, ActionRow, Handler, RunChange
from waybook.projections.decoding import StepBeganAsRead
from waybook.projections.progress import OpenAction, Progress, execution
from waybook.projections.storable import json_text, text

_encode = msgspec.json.Encoder().encode

NAME = "agent_actions"
KEY = ("tenant", "agent", "run", "action")
COLUMNS = (*KEY, *ActionRow.__struct_fields__)
"""Of a whole row, in the order of `inserts`."""

Insert = tuple[Any, ...]
Patch = tuple[Any, ...]


_ABANDONED = {
    "lost": "its worker was lost",
    "closed": "the run ended before it did",
    "taken_over": "a person took the run over",
}


class _Output(msgspec.Struct, omit_defaults=True):
    event: str
    payload: msgspec.Raw
    branch: str | None = None


def _began(change: RunChange, event: e.StepBegan | StepBeganAsRead) -> None:
    progress = change.progress
    if progress.pending or progress.retries or progress.exhausted or progress.released:
        _is_not_due_any_more(change, execution(event.walk, event.step, event.trigger))
    progress.open[event.action] = OpenAction(event.step, event.trigger, event.walk, event.command)
    change.begin_action(
        event.action,
        ActionRow(
            event.step,
            event.trigger,
            event.walk,
            event.attempt,
            "running",
            progress.failures.get(event.step, 0),
            change.sequence,
            _text(event.branch),
            event.deadline,
            change.commit.at,
        ),
    )


def _is_not_due_any_more(change: RunChange, due: str) -> None:
    progress = change.progress
    pending = progress.pending.pop(due, None)
    if pending is not None:
        change.drop_action(pending)
    progress.retries.pop(due, None)
    progress.exhausted.pop(due, None)
    released = progress.released.pop(due, None)
    if released is not None:
        progress.open.pop(released, None)
        change.end_action(released, ActionEnd("skipped", ended_at=change.commit.at))


def _completed(change: RunChange, event: e.StepCompleted) -> None:
    commit = change.commit
    change.progress.open.pop(event.action, None)
    end = ActionEnd("completed", None, False, event.duration_ms, _text(event.model), _usage(event.usage))
    end.ended_at = commit.at
    end.output = _output(commit, event)
    change.end_action(event.action, end)


def _output(commit: Commit, event: e.StepCompleted) -> str:
    events = commit.events
    published = [
        _Output(x.event, x.payload, x.branch) for i in event.outputs if type(x := events[i]) is e.EventPublished
    ]
    return json_text(published)


def _usage(usage: e.TokenUsage | None) -> str | None:
    return _encode(usage).decode() if usage is not None else None


def _failed(change: RunChange, event: e.StepFailed) -> None:
    action = change.progress.open.pop(event.action, None)
    change.progress.failures[event.step] = event.failures
    if event.exhausted and action is not None:
        _exhaust(change.progress, action, "")
    change.end_action(
        event.action,
        ActionEnd(
            "failed",
            retry_count=event.failures,
            exhausted=event.exhausted,
            duration_ms=event.duration_ms,
            model_used=_text(event.model),
            token_usage=_usage(event.usage),
            error_type=_text(event.error.type),
            error_message=_text(event.error.text),
            ended_at=change.commit.at,
        ),
    )


def _abandoned(change: RunChange, event: e.ActionAbandoned) -> None:
    progress = change.progress
    action = progress.open.pop(event.action, None)
    if action is None:
        progress.released = {due: one for due, one in progress.released.items() if one != event.action}
    elif action.released:
        progress.released.pop(action.execution, None)
    if action is not None and event.failures is not None:
        progress.failures[action.step] = event.failures
        if event.exhausted:
            _exhaust(progress, action, action.command)
    change.end_action(
        event.action,
        ActionEnd(
            "abandoned",
            retry_count=event.failures,
            exhausted=event.exhausted,
            error_type=event.reason,
            error_message=event.because or _ABANDONED[event.reason],
            ended_at=change.commit.at,
        ),
    )


def _exhaust(progress: Progress, action: OpenAction, command: str) -> None:
    if action.walk == progress.walk:
        progress.exhausted[action.execution] = command


def _reused(change: RunChange, event: e.StepReused) -> None:
    change.progress.exhausted.pop(execution(change.progress.walk, event.step, event.trigger), None)


def _released(change: RunChange, event: e.ActionReleased) -> None:
    action = change.progress.open.get(event.action)
    if action is not None:
        action.released = True
        change.progress.released[action.execution] = event.action
        if event.reason == "wait":
            del change.progress.open[event.action]  # held by nobody; a timer begins the next attempt
    change.end_action(event.action, ActionEnd("pending"))


def _offered(change: RunChange, event: e.StepOffered) -> None:
    _stands_pending(change, event.step, event.trigger, event.walk, attempt=1, branch=_text(event.branch))


def _timer_fired(change: RunChange, event: e.TimerFired) -> None:
    for retry in change.progress.retries.values():
        if retry.timer == event.timer:
            _stands_pending(change, retry.step, retry.trigger, change.progress.walk, attempt=retry.attempt)


def _stands_pending(
    change: RunChange, step: str, trigger: str, walk: int, *, attempt: int, branch: str | None = None
) -> None:
    progress = change.progress
    action = f"{change.event_name}/{step}"  # never the id of an action, which is an event's name
    progress.pending[execution(walk, step, trigger)] = action
    failures = progress.failures.get(step, 0)
    change.begin_action(
        action,
        ActionRow(
            step=step,
            trigger=trigger,
            walk=walk,
            attempt=attempt,
            status="pending",
            retry_count=failures,
            sequence=change.sequence,
            branch=branch,
        ),
    )


def _nothing_due(change: RunChange, event: e.WalkStarted | e.RunEnded | e.RunTakenOver) -> None:
    """What was due in a run or walk that is over, or that a person has taken over, will not begin."""
    progress = change.progress
    if type(event) is e.WalkStarted:
        progress.walk = event.n
        if event.by != NO_PERSON:
            progress.failures.clear()  # a person begins anew; a machine's walk does not
        progress.exhausted.clear()
    for action in progress.pending.values():
        change.end_action(action, ActionEnd("skipped", ended_at=change.commit.at))
    progress.pending.clear()
    progress.retries.clear()


HANDLERS: dict[type, Handler] = {
    e.StepBegan: _began,
    e.StepCompleted: _completed,
    e.StepFailed: _failed,
    e.ActionAbandoned: _abandoned,
    e.ActionReleased: _released,
    e.StepOffered: _offered,
    e.StepReused: _reused,
    e.TimerFired: _timer_fired,
    e.WalkStarted: _nothing_due,
    e.RunEnded: _nothing_due,
    e.RunTakenOver: _nothing_due,
}


def _text(value: str | None) -> str | None:
    return text(value) if value is not None else None


def _named(change: RunChange, action: str) -> tuple[str, str, str, str]:
    return (change.key.tenant, change.key.agent, change.key.run, action)


def inserts(changes: Iterable[RunChange]) -> list[Insert]:
    """Rows begun in the batch, for the statement `insert_actions`."""
    return [(*_named(c, a), *msgspec.structs.astuple(row)) for c in changes for a, row in c.actions.items()]


def patches(changes: Iterable[RunChange]) -> list[Patch]:
    """Ends of rows begun before, for the statement `patch_actions`."""
    return [(*_named(c, a), *msgspec.structs.astuple(end)) for c in changes for a, end in c.ends.items()]


def drops(changes: Iterable[RunChange]) -> list[Patch]:
    """Pending rows whose attempt has begun under its own id, for the statement `drop_actions`."""
    return [_named(c, a) for c in changes for a in c.dropped]
