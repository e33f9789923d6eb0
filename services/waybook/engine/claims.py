"""Who may run what: claims on open actions, and what a redelivered command does (DESIGN 4, "Claims")."""

from collections import Counter

from waybook.engine.definition import KILL_SWITCH_ON, Step
from waybook.engine.dispatch import begin, dispatch_all, may_begin
from waybook.engine.inputs import Accepted, Delivered, Nothing, Outcome, Released
from waybook.engine.lifecycle import take_row
from waybook.engine.operations import leave_to_reconcile, settled_waits, take_up
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.run import Action, Run, is_lost
from waybook.events import engine as e


def resume(recorder: Recorder, delivered: Delivered) -> Outcome:
    """A delivery of a command whose effect is stored (rules 3, 5 and 6).

    Renews the open actions that this process runs, gives the others a new attempt, or finds nothing left to do.
    """
    mine = [a for a in recorder.run.open_actions() if a.command == delivered.command.id]
    if not mine:
        return Nothing("applied")
    if any(a.claim > delivered.claim for a in mine):
        return Nothing("superseded")
    if any(_is_elsewhere(recorder, delivered, a) for a in mine):
        return Nothing("elsewhere")
    older = [a for a in mine if a.claim < delivered.claim or a.status == "released"]
    if not older:
        return Nothing("held")
    kept = tuple(a.id for a in older if a.status == "running" and _runs_here(recorder, delivered, a))
    if kept:
        recorder.record(e.LeaseRenewed(actions=kept, claim=delivered.claim))
    holder = Holder(delivered.command.id, delivered.claim)
    for action in older:
        if action.id not in kept:
            _next_attempt(recorder, action, holder)
    return Accepted()


def _is_elsewhere(recorder: Recorder, delivered: Delivered, action: Action) -> bool:
    """Whether the action began under another message with this command, which COMMANDS still holds.

    A command stands in COMMANDS twice while it is moved to another lane, or when a client sent it again. Its
    sequence alone does not say that the earlier holder was lost.
    """
    sequence = action.claim.sequence
    return sequence not in (delivered.claim.sequence, *recorder.world.gone)


def _runs_here(recorder: Recorder, delivered: Delivered, action: Action) -> bool:
    """A claim belongs to one process, and what this very commit begins is run by its author."""
    return action.claim == delivered.held or recorder.is_new(action.id)


def carry_on(recorder: Recorder, delivered: Delivered) -> Outcome:
    """`continue`: gives actions whose command is gone a new attempt, and begins what is due and never began."""
    holder = Holder(delivered.command.id, delivered.claim)
    before = len(recorder.events)
    if KILL_SWITCH_ON in recorder.definition.reads:
        _stopped(recorder)
    for action in recorder.run.open_actions():
        if action.claim.sequence in recorder.world.gone:
            _next_attempt(recorder, action, holder)
    if recorder.run.waiting and may_begin(recorder.definition, recorder.run):
        for action in settled_waits(recorder.run):
            take_up(recorder, action, holder)
    dispatch_all(recorder, holder)
    return Accepted() if len(recorder.events) > before else Nothing("nothing_due")


def _stopped(recorder: Recorder) -> None:
    """The kill switch is on: the table says where a run goes that has not begun to send."""
    policy = recorder.world.policy
    if policy is not None and policy.kill_switch.on:
        take_row(recorder, (KILL_SWITCH_ON,), policy.kill_switch)


def _next_attempt(recorder: Recorder, action: Action, holder: Holder) -> None:
    """Begins the attempt after a lost or released one, unless the loss exhausted its step (rule 9)."""
    step = recorder.definition.steps[action.step]
    if action.status == "running" and _abandon(recorder, action, step):
        _convict(recorder, action)
    elif may_begin(recorder.definition, recorder.run):
        begin(recorder, step, action.trigger, action.bindings, holder, branch=action.branch)
    elif action.status == "released":
        recorder.record(e.ActionAbandoned(action=action.id, reason="closed"))


def _abandon(recorder: Recorder, action: Action, step: Step) -> bool:
    """Ends an attempt whose worker was lost; whether that exhausts its step."""
    failures = recorder.run.failures.get(step.name, 0)
    if not failures or _is_lost_most_often(recorder.run, action):
        failures += 1
    exhausted = failures >= step.retry.max_failures
    recorder.record(e.ActionAbandoned(action=action.id, reason="lost", failures=failures, exhausted=exhausted))
    return exhausted


def _is_lost_most_often(run: Run, action: Action) -> bool:
    """Whether its execution has now lost more workers than any other of its step.

    One death takes all executions of a wide step along, under one command or many; it counts as one failure of the step.
    """
    lost = Counter(
        a.execution for a in run.actions.values() if a.step == action.step and a.walk == action.walk and is_lost(a)
    )
    own = lost.pop(action.execution, 0) + 1
    return own > max(lost.values(), default=0)


def _convict(recorder: Recorder, action: Action) -> None:
    """The command killed its workers too often: the run fails by its table's row for StepFailed.

    That row is asked with a failure that is not recorded; the abandonment stands for it.
    """
    failures = recorder.run.failures[action.step]
    reason = f"{action.step} lost its worker {failures} times"
    if action.command not in recorder.run.convicted:
        recorder.record(e.CommandConvicted(command=action.command, reason=reason))
    error = e.Failure(type="WorkerLost", text=reason, retryable=False)
    failure = e.StepFailed(
        action=action.id, step=action.step, error=error, failures=failures, exhausted=True, duration_ms=0
    )
    take_row(recorder, ("StepFailed",), failure)
    if recorder.run.operations and not recorder.run.ended:
        leave_to_reconcile(recorder, action)


def release(recorder: Recorder, released: Released) -> Outcome:
    """A worker that stops gives back the actions it still holds (rule 4)."""
    before = len(recorder.events)
    for action_id in released.actions:
        action = recorder.run.actions.get(action_id)
        if action is not None and action.status == "running":
            recorder.record(e.ActionReleased(action=action_id, reason="stop"))
    return Accepted() if len(recorder.events) > before else Nothing("superseded")
