"""Failures and retries: attempts of the same execution, on a grid, with a limit (DESIGN 4, "Retry").

An answer that asks to wait (Retry-After) is no failure while the step's waiting budget lasts: the attempt is given back,
and a timer of class `wait` begins the next one.
"""

import zlib

from waybook.engine import approvals
from waybook.engine.definition import FAILED, Row, Step
from waybook.engine.dispatch import begin_or_offer, dispatch_all, may_begin
from waybook.engine.failures import failures_with
from waybook.engine.inputs import Accepted, Delivered, Failed, Nothing, Outcome, Refused
from waybook.engine.inputs import Retry as RetryRequest
from waybook.engine.lifecycle import matching_row, move, names_of, open_window, said_by, take_row
from waybook.engine.operations import leave_to_reconcile, settled_waits
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.run import NO_PERSON, Action, PathStep, Run, execution_key
from waybook.engine.walks import kept, restart
from waybook.events import engine as e


def next_due(now: int, grid_ms: int, not_before: int | None = None) -> int:
    """The first multiple of the grid after `now`; a later `not_before` (a Retry-After) wins."""
    due = (now // grid_ms + 1) * grid_ms
    return max(due, not_before) if not_before is not None else due


BY_MACHINE = RetryRequest("")
"""What the table is asked with where no person asks to try again."""

LEAST_WAIT_MS = 1_000
"""What a wait counts for at least, so that a side which says "now" for ever uses the budget up."""

MOST_SPREAD_MS = 30_000


def fail(recorder: Recorder, failed: Failed, action: Action, *, ask_table: bool = True) -> Outcome:
    """Ends an attempt as failed, moves the lifecycle, and schedules the next attempt while there may be one.

    Without `ask_table` the run stays in its state: the table's row for failures raises itself.
    """
    step = recorder.definition.steps[action.step]
    if failed.not_before is not None and failed.error.retryable and _wait(recorder, action, step, failed.not_before):
        return Accepted()
    failures = failures_with(recorder.run, action)
    exhausted = not (failed.error.retryable and step.stop_on_error) or failures >= step.retry.max_failures
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
        recorder.note("step_error_ignored", f"{step.name} failed, and the run goes on: {failed.error.text}")
    elif ask_table:
        take_row(recorder, ("StepFailed",), event)
    if not exhausted and not recorder.run.ended and action.walk == recorder.run.walk:
        _schedule(recorder, step, action, failed.not_before)
    if exhausted and recorder.run.operations and not recorder.run.ended:
        leave_to_reconcile(recorder, action)
    return Accepted()


def _wait(recorder: Recorder, action: Action, step: Step, not_before: int) -> bool:
    """Gives the attempt back until the time that the other side named; False when its budget does not cover that."""
    run = recorder.run
    until = max(not_before, recorder.now + LEAST_WAIT_MS)
    asked = until - recorder.now
    if run.ended or action.walk != run.walk or run.waited.get(action.execution, 0) + asked > step.retry.wait_budget_ms:
        return False
    recorder.record(e.ActionReleased(action=action.id, reason="wait", until=until))
    due = until + spread(f"{run.key}/{action.execution}", asked)
    recorder.record(e.TimerArmed(timer_class="wait", due=due, about=action.execution))
    return True


def spread(name: str, asked_ms: int) -> int:
    """How much later than asked it goes on, in ms: up to a quarter of the wait, so that many do not come at once.

    The same for the same name, since a decision knows no chance.
    """
    return zlib.crc32(name.encode()) % min(MOST_SPREAD_MS, max(LEAST_WAIT_MS, asked_ms // 4))


def _schedule(recorder: Recorder, step: Step, action: Action, not_before: int | None) -> None:
    due = next_due(recorder.now, step.retry.grid_ms or recorder.definition.retry_grid_ms, not_before)
    timer = recorder.record(e.TimerArmed(timer_class="retry", due=due, about=action.execution))
    recorder.record(
        e.RetryScheduled(step=step.name, trigger=action.trigger, attempt=action.attempt + 1, due=due, timer=timer)
    )


def retry(recorder: Recorder, delivered: Delivered, request: RetryRequest) -> Outcome:
    """Takes a failed run up again: repeats its recorded way in one commit and begins the failed executions.

    A timer's retry begins what waits for that timer, and what lost its worker while the run was failed; a
    person's also what is exhausted. A timer does not move a run in which something is exhausted: it waits for a
    person. A fire is accepted if its timer is pending and never compared with a clock.
    """
    before = recorder.run
    if request.timer is None:
        refused = _not_failed(recorder, request)
        if refused is not None:
            return refused
        due = [a for a in _failed_actions(recorder) if not _is_told_to_wait(recorder.run, a)]
    else:
        if request.timer in before.resolved:
            return Nothing("resolved")
        if request.timer not in before.timers:
            return Nothing("unknown_timer")
        due = _due_by(recorder, request.timer)
        recorder.record(e.TimerFired(timer=request.timer))
        if not due:
            return Accepted()
    take_up_again(recorder, due, Holder(delivered.command.id, delivered.claim), request)
    return Accepted()


def _not_failed(recorder: Recorder, request: RetryRequest) -> Refused | None:
    run = recorder.run
    if run.ended:
        return Refused("terminal", f"the run has ended as {run.outcome}")
    if run.taken_over is not None:
        return Refused("taken_over", f"{run.taken_over} has taken the run over; it has to be handed back first")
    if run.state != FAILED:
        return Refused("illegal_edge", f"only a failed run can be tried again; this one is {run.state}")
    if request.how is not None and _named_way(recorder, request) is None:
        return Refused("illegal_edge", f"there is no way {request.how!r} out of this failure")
    if way_back(recorder, request) is None:
        return Refused("illegal_edge", "the lifecycle table has no way back from `failed`")
    return None


def _failed_actions(recorder: Recorder) -> list[Action]:
    """The newest attempts of this walk's executions that failed or were abandoned, and are to be tried again."""
    run, steps = recorder.run, recorder.definition.steps
    newest = [run.actions[a] for key, a in run.executions.items() if key.startswith(f"{run.walk}:")]
    failed = [a for a in newest if a.status in ("failed", "abandoned") and steps[a.step].stop_on_error]
    return [*failed, *settled_waits(run), *run.told_to_wait()] if run.waiting or run.retries else failed


def _is_told_to_wait(run: Run, action: Action) -> bool:
    """Whether the time that the other side named for the next attempt is still to come."""
    waiting = run.retries.get(action.execution)
    return action.status == "released" and waiting is not None and waiting.timer in run.timers


def _due_by(recorder: Recorder, timer: str) -> list[Action]:
    run = recorder.run
    if run.state == FAILED and run.timers[timer].timer_class != "retry":
        return []  # it is taken up with what failed
    failed = _failed_actions(recorder)
    waiting = {execution_key(run.walk, r.step, r.trigger) for r in run.retries.values() if r.timer == timer}
    blocked = run.state == FAILED and (any(a.exhausted for a in failed) or way_back(recorder) is None)
    if blocked or not any(a.execution in waiting for a in failed):
        return []
    return [a for a in failed if a.execution in waiting or not (a.exhausted or _is_scheduled(run, a))]


def _is_scheduled(run: Run, action: Action) -> bool:
    scheduled = run.retries.get(action.execution)
    return scheduled is not None and scheduled.timer in run.timers


def take_up_again(recorder: Recorder, due: list[Action], holder: Holder, request: RetryRequest = BY_MACHINE) -> None:
    """Moves a failed run back, disposes of what came meanwhile, begins `due` and all else that is due.

    Where the way back leads into a window, what failed is not repeated: the window's end begins it anew.
    """
    for action in due:
        waiting = recorder.run.retries.get(action.execution)
        if waiting is not None and waiting.timer in recorder.run.timers:
            recorder.record(e.TimerCancelled(timer=waiting.timer, reason="retried"))
    unhandled = list(recorder.run.unhandled)
    if recorder.run.state == FAILED and _walk_back(recorder, request, holder):
        due = []
    open_window(recorder)
    for name in unhandled:
        published = recorder.run.event(name)
        value = recorder.definition.decode(published.event, published.schema, published.payload)
        take_row(recorder, names_of(recorder, published.event), value, name)
    if not may_begin(recorder.definition, recorder.run):
        return
    for action in due:
        step = recorder.definition.steps[action.step]
        begin_or_offer(recorder, step, action.trigger, action.bindings, holder, branch=action.branch)
    dispatch_all(recorder, holder, fresh=unhandled)


def way_back(recorder: Recorder, request: RetryRequest = BY_MACHINE) -> Row | PathStep | None:
    """The first move out of `failed`: the one recorded when a person led the run out of it, or the table's row."""
    run = recorder.run
    row = matching_row(recorder.definition.table, run, ("RetryRequested",), request, recorder.world)
    if row is not None and _leads_elsewhere(recorder, row):
        return row
    return run.path[0] if run.path and run.path[0].from_state == FAILED else row


def _named_way(recorder: Recorder, request: RetryRequest) -> Row | None:
    return matching_row(recorder.definition.table, recorder.run, ("RetryRequested",), request, recorder.world)


def _leads_elsewhere(recorder: Recorder, row: Row) -> bool:
    """Whether a row for a retry repeats nothing of the recorded way."""
    table = recorder.definition.table
    return row.restart or row.next in table.windows or row.next in table.contracts


def _walk_back(recorder: Recorder, request: RetryRequest, holder: Holder) -> bool:
    """The way failed -> ... -> the state before the failure: recorded transitions, and completed executions reused.

    True: the table's row led into a window or before people, or began a new walk, instead.
    """
    run = recorder.run
    way = way_back(recorder, request)
    why = said_by(recorder, "tried again", request.reason) if recorder.by != NO_PERSON else "retry"
    if isinstance(way, Row) and _leads_elsewhere(recorder, way):
        take_row(recorder, ("RetryRequested",), request, reason=why)
        if way.restart:
            restart(recorder, way.name, why, holder, keep=kept(recorder, way, request))
        return True
    recorded = list(run.path)
    completed = [run.actions[a] for key, a in run.executions.items() if key.startswith(f"{run.walk}:")]
    if not (recorded and recorded[0].from_state == FAILED):
        take_row(recorder, ("RetryRequested",), request, reason=why)
    for action in completed:
        if action.status == "completed":
            recorder.record(e.StepReused(step=action.step, trigger=action.trigger, action=action.id))
    while recorded and recorded[0].from_state != recorder.run.state:
        recorded.pop(0)
    for step in recorded:
        why_now = why if recorder.run.state == FAILED else "retry"
        move(recorder, step.row, step.to_state, step.on, {}, why_now, again=True)
    if recorder.definition.table.contracts:
        approvals.ask_for_state(recorder)
    return False
