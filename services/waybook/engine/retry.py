"""Failures and retries: attempts of the same execution, on a grid, with a limit (DESIGN 4, "Retry")."""

from waybook.engine.definition import FAILED, Step
from waybook.engine.dispatch import begin, dispatch, may_begin
from waybook.engine.inputs import Accepted, Delivered, Failed, Nothing, Outcome, Refused
from waybook.engine.inputs import Retry as RetryRequest
from waybook.engine.lifecycle import move, take_row
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.run import Action, execution_key
from waybook.events import engine as e


def next_due(now: int, grid_ms: int, not_before: int | None = None) -> int:
    """The first multiple of the grid after `now`; a later `not_before` (a Retry-After) wins."""
    due = (now // grid_ms + 1) * grid_ms
    return max(due, not_before) if not_before is not None else due


def fail(recorder: Recorder, failed: Failed, action: Action) -> Outcome:
    """Ends an attempt as failed, moves the lifecycle, and schedules the next attempt while there may be one."""
    step = recorder.definition.steps[action.step]
    failures = recorder.run.failures.get(step.name, 0) + 1
    exhausted = not failed.error.retryable or failures >= step.retry.max_failures
    event = e.StepFailed(
        action=action.id,
        step=step.name,
        error=failed.error,
        failures=failures,
        exhausted=exhausted,
        duration_ms=failed.duration_ms,
        model=failed.model,
        usage=failed.usage,
    )
    recorder.record(event)
    if not step.stop_on_error:
        return Accepted()
    take_row(recorder, ("StepFailed",), event)
    if not exhausted and not recorder.run.ended:
        _schedule(recorder, step, action, failed.not_before)
    return Accepted()


def _schedule(recorder: Recorder, step: Step, action: Action, not_before: int | None) -> None:
    due = next_due(recorder.now, step.retry.grid_ms, not_before)
    timer = recorder.record(e.TimerArmed(timer_class="retry", due=due, about=action.execution))
    recorder.record(
        e.RetryScheduled(step=step.name, trigger=action.trigger, attempt=action.attempt + 1, due=due, timer=timer)
    )


def retry(recorder: Recorder, delivered: Delivered, request: RetryRequest) -> Outcome:
    """Takes a failed run up again: repeats its recorded way in one commit and begins the failed executions.

    A timer's retry begins what waits for that timer, a person's also what is exhausted.
    """
    if request.timer is not None:
        refused = _accept_fire(recorder, request.timer)
        if refused is not None:
            return refused
    elif recorder.run.state != FAILED:
        reason = "terminal" if recorder.run.ended else "illegal_edge"
        return Refused(reason, f"only a failed run can be tried again; this one is {recorder.run.state}")
    due = _failed_actions(recorder, request.timer)
    unhandled = list(recorder.run.unhandled)
    holder = Holder(delivered.command.id, delivered.claim)
    if recorder.run.state == FAILED:
        _walk_back(recorder)
    if not may_begin(recorder.definition, recorder.run):
        return Accepted()
    for action in due:
        step = recorder.definition.steps[action.step]
        begin(recorder, step, action.trigger, action.bindings, holder, branch=action.branch)
    _take_up(recorder, unhandled, holder)
    return Accepted()


def _accept_fire(recorder: Recorder, timer: str) -> Outcome | None:
    """A fire is accepted if its timer is pending; None then. It is never compared with a clock."""
    if timer in recorder.run.resolved:
        return Nothing("resolved")
    if timer not in recorder.run.timers:
        return Nothing("unknown_timer")
    recorder.record(e.TimerFired(timer=timer))
    return None


def _failed_actions(recorder: Recorder, timer: str | None) -> list[Action]:
    run = recorder.run
    if timer is not None:
        waiting = [r for r in run.retries.values() if r.timer == timer]
        keys = [execution_key(run.walk, r.step, r.trigger) for r in waiting]
    else:
        keys = list(run.executions)
    actions = [run.actions[run.executions[k]] for k in keys]
    return [a for a in actions if a.walk == run.walk and a.status in ("failed", "abandoned")]


def _walk_back(recorder: Recorder) -> None:
    """The way failed -> ... -> the state before the failure: recorded transitions, and completed executions reused."""
    recorded = list(recorder.run.path)
    row = take_row(recorder, ("RetryRequested",), None)
    if row is None:
        return
    start = next((i for i, step in enumerate(recorded) if step.from_state == recorder.run.state), len(recorded))
    for action in list(recorder.run.actions.values()):
        if action.status == "completed" and action.walk == recorder.run.walk:
            recorder.record(e.StepReused(step=action.step, trigger=action.trigger, action=action.id))
    for step in recorded[start:]:
        move(recorder, step.row, step.to_state, step.on, {}, "retry")


def _take_up(recorder: Recorder, unhandled: list[str], holder: Holder) -> None:
    """What came due while the run was failed: its lifecycle rows and its executions."""
    for name in unhandled:
        published = recorder.run.event(name)
        value = recorder.definition.decode(published.event, published.schema, published.payload)
        take_row(recorder, names_of(recorder, published.event), value)
    for name in unhandled:
        dispatch(recorder, name, holder)


def names_of(recorder: Recorder, event: str) -> tuple[str, ...]:
    """The names under which a table may list an event: its own, and `StopEvent` for a stop event."""
    if recorder.definition.kinds.get(event) == "stop":
        return (event, "StopEvent")
    return (event,)
