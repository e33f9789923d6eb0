"""Why a run is not moving, as far as its commits say so; the words are the engine's (DESIGN 1, "hold").

The engine derives the same from the whole run and its definition (`waybook.engine.hold`). A read model knows no
definition: where the engine names what a parked state waits for, this names the state.
"""

from typing import NamedTuple

from waybook.engine.hold import HoldKind
from waybook.events import engine as e
from waybook.projections.changes import Handler, RunChange
from waybook.projections.progress import Progress, Retry, execution

FAILED = "failed"
RATE_LIMIT = "rate_limit"
"""What an attempt waits for that was given back because the other side asked to wait."""


class Hold(NamedTuple):
    """`reason` is a stable word, `until` ms UTC when a timer will end it."""

    kind: HoldKind
    reason: str | None = None
    until: int | None = None


MOVING = Hold("none")


def hold(progress: Progress) -> Hold:
    """The hold of a run after its last commit."""
    if progress.unknown:
        dues = [progress.timers[t][1] for t, key in progress.asks.items() if key in progress.unknown]
        return Hold("reconciling", "unknown_outcome", min(dues, default=None))
    if progress.disputed:
        return Hold("reconciling", "disputed")
    if progress.outcome is not None:
        return MOVING
    if progress.taken_over:
        return Hold("waiting", "taken_over")
    if progress.status == FAILED:
        return _failed(progress)
    if progress.approvals:
        return Hold("waiting", "approval", next(iter(progress.approvals.values())))
    if progress.open or not progress.pending.keys() <= progress.retries.keys():
        return MOVING  # begun, or offered to a worker
    if progress.timers:
        timer_class, due = min(progress.timers.values(), key=lambda t: t[1])
        return Hold("retry" if timer_class == "retry" else "waiting", timer_class, due)
    return _stuck(progress) or Hold("waiting", progress.status)


def _failed(progress: Progress) -> Hold:
    due = [r.due for r in progress.retries.values() if r.timer in progress.timers]
    if due and not progress.exhausted:
        return Hold("retry", "retry", min(due))
    return _stuck(progress) or Hold("waiting", "exhausted")


def _stuck(progress: Progress) -> Hold | None:
    for command in progress.exhausted.values():
        if command in progress.convicted:
            return Hold("dead command", "convicted")
        return Hold("waiting", "exhausted")
    return None


def _retry_scheduled(change: RunChange, event: e.RetryScheduled) -> None:
    progress = change.progress
    retry = Retry(event.step, event.trigger, event.attempt, event.due, event.timer)
    progress.retries[execution(progress.walk, event.step, event.trigger)] = retry


def _timer_armed(change: RunChange, event: e.TimerArmed) -> None:
    progress = change.progress
    told_to_wait = event.timer_class == "wait" and event.about in progress.released
    progress.timers[change.event_name] = (RATE_LIMIT if told_to_wait else event.timer_class, event.due)
    if event.about in progress.unknown:
        progress.asks[change.event_name] = event.about


def _timer_resolved(change: RunChange, event: e.TimerFired | e.TimerCancelled) -> None:
    change.progress.timers.pop(event.timer, None)
    change.progress.asks.pop(event.timer, None)


def _approval_requested(change: RunChange, event: e.ApprovalRequested) -> None:
    change.progress.approvals[change.event_name] = event.expires


def _approval_settled(change: RunChange, event: e.ApprovalDecided | e.ApprovalRevoked) -> None:
    change.progress.approvals.pop(event.approval, None)


def _settled(change: RunChange, event: e.OperationSettled) -> None:
    if event.outcome == "unknown":
        change.progress.unknown[event.key] = change.event_name
    else:
        change.progress.unknown.pop(event.key, None)
    if event.by == "person":
        change.progress.disputed.pop(event.key, None)


def _disputed(change: RunChange, event: e.OperationDisputed) -> None:
    change.progress.disputed[event.key] = change.event_name


def _intended(change: RunChange, event: e.OperationIntended) -> None:
    change.progress.unknown.pop(event.key, None)


def _convicted(change: RunChange, event: e.CommandConvicted) -> None:
    change.progress.convicted[event.command] = event.reason


def _taken_over(change: RunChange, event: e.RunTakenOver) -> None:
    change.progress.taken_over = True
    _nothing_waits(change.progress)


def _handed_back(change: RunChange, event: e.RunHandedBack) -> None:
    change.progress.taken_over = False


def _walk_started(change: RunChange, event: e.WalkStarted) -> None:
    change.progress.taken_over = False
    _nothing_waits(change.progress)


def _nothing_waits(progress: Progress) -> None:
    """What was told to wait is not tried again; a timer that is left is a timer like others."""
    told = [(timer, due) for timer, (timer_class, due) in progress.timers.items() if timer_class == RATE_LIMIT]
    progress.timers.update({timer: ("wait", due) for timer, due in told})


HANDLERS: dict[type, Handler] = {
    e.RetryScheduled: _retry_scheduled,
    e.TimerArmed: _timer_armed,
    e.TimerFired: _timer_resolved,
    e.TimerCancelled: _timer_resolved,
    e.ApprovalRequested: _approval_requested,
    e.ApprovalDecided: _approval_settled,
    e.ApprovalRevoked: _approval_settled,
    e.OperationIntended: _intended,
    e.OperationSettled: _settled,
    e.OperationDisputed: _disputed,
    e.CommandConvicted: _convicted,
    e.RunTakenOver: _taken_over,
    e.RunHandedBack: _handed_back,
    e.WalkStarted: _walk_started,
}
