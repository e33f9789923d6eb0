"""Who may run what: claims on open actions, and what a redelivered command does (DESIGN 4, "Claims")."""

from waybook.engine.definition import Step
from waybook.engine.dispatch import begin, dispatch_all, may_begin
from waybook.engine.inputs import Accepted, Delivered, Nothing, Outcome, Released, Renewed
from waybook.engine.lifecycle import take_row
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.run import Action
from waybook.events import engine as e


def resume(recorder: Recorder, delivered: Delivered) -> Outcome:
    """A delivery of a command whose effect is stored: takes its open actions over, or finds nothing left to do."""
    mine = [a for a in recorder.run.open_actions() if a.command == delivered.command.id]
    if not mine:
        return Nothing("applied")
    if any(a.claim > delivered.claim for a in mine):
        return Nothing("superseded")
    stale = [a for a in mine if a.claim < delivered.claim or a.status == "released"]
    if not stale:
        return Nothing("held")
    holder = Holder(delivered.command.id, delivered.claim)
    convicted = False
    for action in stale:
        convicted = _next_attempt(recorder, action, holder) or convicted
    return Accepted(convicted=convicted)


def carry_on(recorder: Recorder, delivered: Delivered) -> Outcome:
    """`continue`: gives actions whose command is gone a new attempt, and begins what is due and never began."""
    holder = Holder(delivered.command.id, delivered.claim)
    before = len(recorder.events)
    convicted = False
    for action in recorder.run.open_actions():
        if action.claim.sequence in recorder.world.gone:
            convicted = _next_attempt(recorder, action, holder) or convicted
    if may_begin(recorder.definition, recorder.run):
        dispatch_all(recorder, holder)
    if len(recorder.events) == before:
        return Nothing("nothing_due")
    return Accepted(convicted=convicted)


def _next_attempt(recorder: Recorder, action: Action, holder: Holder) -> bool:
    """Begins the attempt after a lost or released one; True when the loss exhausted its step (rule 9)."""
    step = recorder.definition.steps[action.step]
    if action.status == "running" and _abandon(recorder, action, step):
        reason = f"{action.step} lost its worker {recorder.run.failures[action.step]} times"
        recorder.record(e.CommandConvicted(command=action.command, reason=reason))
        error = e.Failure(type="WorkerLost", text=reason, retryable=False)
        take_row(recorder, ("StepFailed",), _as_failure(recorder, action, error))
        return True
    if not may_begin(recorder.definition, recorder.run):
        if action.status == "released":
            recorder.record(e.ActionAbandoned(action=action.id, reason="closed"))
        return False
    begin(recorder, step, action.trigger, action.bindings, holder, branch=action.branch)
    return False


def _abandon(recorder: Recorder, action: Action, step: Step) -> bool:
    failures = recorder.run.failures.get(step.name, 0) + 1
    exhausted = failures >= step.retry.max_failures
    recorder.record(e.ActionAbandoned(action=action.id, reason="lost", failures=failures, exhausted=exhausted))
    return exhausted


def _as_failure(recorder: Recorder, action: Action, error: e.Failure) -> e.StepFailed:
    """What the table's StepFailed row is asked with; not recorded, the abandonment stands for it."""
    failures = recorder.run.failures[action.step]
    return e.StepFailed(
        action=action.id, step=action.step, error=error, failures=failures, exhausted=True, duration_ms=0
    )


def renew(recorder: Recorder, renewed: Renewed) -> Outcome:
    """A later delivery reached the process that still runs the command's actions (rule 5)."""
    mine = [a for a in recorder.run.open_actions() if a.command == renewed.command and a.status == "running"]
    older = tuple(a.id for a in mine if a.claim < renewed.claim)
    if any(a.claim > renewed.claim for a in mine):
        return Nothing("superseded")
    if not older:
        return Nothing("held" if mine else "applied")
    recorder.record(e.LeaseRenewed(actions=older, claim=renewed.claim))
    return Accepted()


def release(recorder: Recorder, released: Released) -> Outcome:
    """A worker that stops gives back the actions it still holds (rule 4)."""
    before = len(recorder.events)
    for action_id in released.actions:
        action = recorder.run.actions.get(action_id)
        if action is not None and action.status == "running" and action.claim == released.claim:
            recorder.record(e.ActionReleased(action=action_id, reason="stop"))
    return Accepted() if len(recorder.events) > before else Nothing("superseded")
