"""Fold: a run's state from its history, commit by commit. Pure; replay and the live path use this same code."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from waybook.engine.aggregates import grants, judged, ledger, outcomes, policy, sender, thread
from waybook.engine.context import changed
from waybook.engine.definition import FAILED
from waybook.engine.errors import HistoryHole
from waybook.engine.run import (
    NO_PERSON,
    Action,
    ActionStatus,
    Approval,
    Offer,
    Operation,
    PathStep,
    Published,
    Retry,
    Run,
    Timer,
    execution_key,
)
from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey

Stored = tuple[Commit, int, str]
"""A commit, its sequence in the stream, and its commit id."""


def fold(run: Run | None, commit: Commit, sequence: int, *, key: RunKey, commit_id: str = "") -> Run:
    """The run after `commit`, stored at `sequence`. Raises HistoryHole when it does not follow `run`."""
    return fold_all(run, [(commit, sequence, commit_id)], key=key)  # type: ignore[return-value]


def fold_all(run: Run | None, history: Iterable[Stored], *, key: RunKey) -> Run | None:
    """The run after all commits of `history`; `run` itself stays as it is. None when there is nothing."""
    current = run.copy() if run is not None else None
    for commit, sequence, commit_id in history:
        version = current.version if current is not None else 0
        if commit.version != version + 1:
            raise HistoryHole(f"run {key}: version {commit.version} at sequence {sequence} follows version {version}")
        current = advance(current, commit, key)
        current.sequence = sequence
        current.commit = commit_id
    return current


def advance(run: Run | None, commit: Commit, key: RunKey) -> Run:
    """Applies a commit to a working copy in place and returns it."""
    if not commit.events:
        raise HistoryHole(f"run {key}: commit {commit.version} holds no event")
    prefix = f"{commit.version}."
    at = commit.at
    for index, event in enumerate(commit.events):
        if run is None:
            run = apply(None, event, f"{prefix}{index}", at, key)
            continue
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(run, event, f"{prefix}{index}", at)
    assert run is not None
    seal(run, commit.version, at, commit.definition, commit.commands)
    return run


def seal(run: Run, version: int, at: int, definition: str, commands: Iterable[str]) -> None:
    """Closes a commit on a working copy: what the envelope says beside its events."""
    run.version = version
    run.at = at
    if definition:
        run.definition = definition
    for command in commands:
        run.applied[command] = version


def apply(run: Run | None, event: e.EngineEvent, name: str, at: int, key: RunKey) -> Run:
    """Applies one event, named `name`, to a working copy in place; begins one on RunStarted."""
    if run is None:
        if type(event) is e.RunStarted:
            return _started(event, at, key)
        run = _system_aggregate(at, key)
    note(run, event, name, at)
    return run


def note(run: Run, event: e.EngineEvent, name: str, at: int) -> None:
    """Applies one event, named `name`, to a working copy of a run that has begun, in place."""
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(run, event, name, at)


def _started(event: e.RunStarted, at: int, key: RunKey) -> Run:
    return Run(
        key=key,
        agent=event.agent,
        definition=event.definition,
        state=event.state,
        initial=event.state,
        started_at=at,
        configuration=event.configuration,
        thread=event.thread,
        parent=event.parent,
        content=event.content,
        flags=event.flags,
        user=event.user,
    )


def _system_aggregate(at: int, key: RunKey) -> Run:
    """System aggregates have no start event: their first fact begins them."""
    if not key.agent.startswith("@"):
        raise HistoryHole(f"run {key}: its history does not begin with RunStarted")
    return Run(key=key, agent=key.agent, definition="", state="open", started_at=at)


def published(run: Run, event: e.EventPublished, name: str, at: int) -> None:
    published = Published(
        name=name,
        ordinal=len(run.log),
        event=event.event,
        schema=event.schema,
        payload=event.payload,
        action=event.action,
        request=event.request,
        branch=event.branch,
        walk=run.walk,
    )
    run.log.append(published)
    run.visible[event.event] = [*run.visible.get(event.event, ()), published]
    if run.state == FAILED:
        run.unhandled.append(name)
    if event.request is not None:
        run.answered.setdefault(event.request, name)


def transitioned(run: Run, event: e.Transitioned, name: str, at: int) -> None:
    run.state = event.to_state
    run.fields.update(event.fields)
    if event.to_state == FAILED:
        return
    run.unhandled = []
    _extend_path(run, PathStep(event.row, event.from_state, event.to_state, event.on))


def _extend_path(run: Run, step: PathStep) -> None:
    """Keeps the way to the present state free of loops, and of `failed` but at its beginning.

    A run that is led out of `failed` to a state that its way never touched begins a way of its own there.
    """
    for index, earlier in enumerate(run.path):
        if earlier.from_state == step.to_state:
            run.path = run.path[:index]
            return
    if step.from_state != FAILED:
        run.path.append(step)
    elif step.to_state != (run.path[-1].to_state if run.path else run.initial):
        run.path = [step]


def fields_set(run: Run, event: e.FieldsSet, name: str, at: int) -> None:
    run.fields.update(event.fields)


def began(run: Run, event: e.StepBegan, name: str, at: int) -> None:
    action = Action(
        id=event.action,
        step=event.step,
        trigger=event.trigger,
        attempt=event.attempt,
        walk=event.walk,
        bindings=event.bindings,
        command=event.command,
        claim=event.claim,
        began_at=at,
        deadline=event.deadline,
        branch=event.branch,
    )
    run.actions[event.action] = action
    key = execution_key(event.walk, event.step, event.trigger)
    previous = run.executions.get(key)
    if previous is not None:
        run.open.pop(previous, None)
        if run.waiting:
            _wait_no_more(run, previous)
    run.executions[key] = event.action
    run.open[event.action] = None
    run.offers.pop(key, None)
    run.retries.pop(key, None)


def completed(run: Run, event: e.StepCompleted, name: str, at: int) -> None:
    version = name.partition(".")[0]
    run.actions[event.action] = replace(
        run.actions[event.action],
        status="completed",
        outputs=tuple([f"{version}.{index}" for index in event.outputs]),
        ended_at=at,
        duration_ms=event.duration_ms,
        model=event.model,
        usage=event.usage,
        reuse_key=event.reuse_key,
    )
    run.open.pop(event.action, None)


def _failed(run: Run, event: e.StepFailed, name: str, at: int) -> None:
    run.actions[event.action] = replace(
        run.actions[event.action],
        status="failed",
        ended_at=at,
        duration_ms=event.duration_ms,
        error=event.error,
        failures=event.failures,
        exhausted=event.exhausted,
        model=event.model,
        usage=event.usage,
    )
    run.open.pop(event.action, None)
    run.failures[event.step] = event.failures


def _abandoned(run: Run, event: e.ActionAbandoned, name: str, at: int) -> None:
    action = run.actions[event.action]
    failures = action.failures if event.failures is None else event.failures
    run.actions[event.action] = replace(
        action, status="abandoned", ended_at=at, failures=failures, exhausted=event.exhausted
    )
    run.open.pop(event.action, None)
    _wait_no_more(run, event.action)
    if event.failures is not None:
        run.failures[action.step] = event.failures


def _released(run: Run, event: e.ActionReleased, name: str, at: int) -> None:
    status: ActionStatus = "released" if event.about is None else "waiting"
    action = run.actions[event.action] = replace(run.actions[event.action], status=status, ended_at=at)
    if event.about is not None:
        run.open.pop(event.action, None)
        run.waiting = {**run.waiting, event.action: event.about}
    elif event.reason == "wait":
        # Nobody holds it any more: its command is done, and a timer begins the next attempt.
        run.open.pop(event.action, None)
        waited = run.waited.get(action.execution, 0) + max(0, (event.until or at) - at)
        run.waited = {**run.waited, action.execution: waited}


def _wait_no_more(run: Run, action: str) -> None:
    if action in run.waiting:
        run.waiting = {a: about for a, about in run.waiting.items() if a != action}


def _renewed(run: Run, event: e.LeaseRenewed, name: str, at: int) -> None:
    for action in event.actions:
        run.actions[action] = replace(run.actions[action], claim=event.claim)


def _offered(run: Run, event: e.StepOffered, name: str, at: int) -> None:
    key = execution_key(event.walk, event.step, event.trigger)
    run.offers[key] = Offer(event.step, event.trigger, event.walk, event.bindings, event.branch)


def _walk_started(run: Run, event: e.WalkStarted, name: str, at: int) -> None:
    kept = set(event.keep)
    if event.by != NO_PERSON:
        run.failures = {}
    run.waited = {}
    run.walk = event.n
    run.walk_token = event.token
    run.taken_over = None
    run.unhandled = []
    run.offers = {}
    run.retries = {}
    run.visible = {}
    gone: set[str] = set()
    for published in run.log:
        is_asked = published.request not in gone  # an answer stands for its own question only
        if is_asked and (published.action is None or published.action in kept):
            run.visible.setdefault(published.event, []).append(published)
        else:
            gone.add(published.name)
    for action_id in event.keep:
        action = run.actions[action_id]
        run.executions[execution_key(event.n, action.step, action.trigger)] = action_id


def _retry_scheduled(run: Run, event: e.RetryScheduled, name: str, at: int) -> None:
    key = execution_key(run.walk, event.step, event.trigger)
    run.retries[key] = Retry(event.step, event.trigger, event.attempt, event.due, event.timer)


def _timer_armed(run: Run, event: e.TimerArmed, name: str, at: int) -> None:
    run.timers[name] = Timer(event.timer_class, event.due, event.about)
    if event.timer_class == "wait":
        action = run.actions.get(run.executions.get(event.about, ""))
        if action is not None and action.status == "released":
            run.retries[event.about] = Retry(action.step, action.trigger, action.attempt + 1, event.due, name)


def _timer_fired(run: Run, event: e.TimerFired, name: str, at: int) -> None:
    run.timers.pop(event.timer, None)
    run.resolved[event.timer] = "fired"


def _timer_cancelled(run: Run, event: e.TimerCancelled, name: str, at: int) -> None:
    run.timers.pop(event.timer, None)
    run.resolved[event.timer] = "cancelled"


def _approval_requested(run: Run, event: e.ApprovalRequested, name: str, at: int) -> None:
    run.approvals[name] = Approval(event)


def _approval_decided(run: Run, event: e.ApprovalDecided, name: str, at: int) -> None:
    run.approvals[event.approval] = replace(run.approvals[event.approval], decided=event)


def _approval_used(run: Run, event: e.ApprovalUsed, name: str, at: int) -> None:
    run.approvals[event.approval] = replace(run.approvals[event.approval], used_by=event.operation)


def _approval_revoked(run: Run, event: e.ApprovalRevoked, name: str, at: int) -> None:
    run.approvals[event.approval] = replace(run.approvals[event.approval], revoked=event.reason)


def _intended(run: Run, event: e.OperationIntended, name: str, at: int) -> None:
    known = run.operations.get(event.key)
    disputed = known.disputed if known is not None else ()
    run.operations[event.key] = Operation(event, name, disputed=disputed)


def _settled(run: Run, event: e.OperationSettled, name: str, at: int) -> None:
    """A person's word ends a dispute."""
    operation = run.operations[event.key]
    disputed = () if event.by == "person" else operation.disputed
    run.operations[event.key] = replace(
        operation, outcome=event.outcome, by=event.by, evidence=event.evidence, disputed=disputed
    )


def _disputed(run: Run, event: e.OperationDisputed, name: str, at: int) -> None:
    operation = run.operations[event.key]
    run.operations[event.key] = replace(operation, disputed=(*operation.disputed, event.outcome))


def _renewed_operation(run: Run, event: e.OperationRenewed, name: str, at: int) -> None:
    run.generations = {**run.generations, event.operation.rpartition("/")[0]: event.generation}


def _convicted(run: Run, event: e.CommandConvicted, name: str, at: int) -> None:
    run.convicted[event.command] = event.reason


def _context_changed(run: Run, event: e.ContextChanged, name: str, at: int) -> None:
    if event.scope == "run":
        run.context = changed(run.context, event.changes)
    else:
        run.thread_changes = (*run.thread_changes, (name, event.changes))


def _precondition_failed(run: Run, event: e.PreconditionFailed, name: str, at: int) -> None:
    run.gate_failure = (event.step, event.error)
    run.unhandled.extend(event.waiting)


def _child_requested(run: Run, event: e.ChildRequested, name: str, at: int) -> None:
    run.children = {**run.children, event.request: event}


def _taken_over(run: Run, event: e.RunTakenOver, name: str, at: int) -> None:
    run.taken_over = event.by
    run.retries = {}
    run.offers = {}


def _handed_back(run: Run, event: e.RunHandedBack, name: str, at: int) -> None:
    run.taken_over = None


def _ended(run: Run, event: e.RunEnded, name: str, at: int) -> None:
    run.outcome = event.outcome
    run.result = event.result
    run.reason = event.reason
    run.context = {}
    run.retries = {}
    run.offers = {}
    run.unhandled = []


def _step_reused(run: Run, event: e.StepReused, name: str, at: int) -> None:
    run.executions[execution_key(run.walk, event.step, event.trigger)] = event.action


_HANDLERS: dict[type, Callable[[Run, Any, str, int], None]] = {
    e.EventPublished: published,
    e.ContextChanged: _context_changed,
    e.ChildRequested: _child_requested,
    e.PreconditionFailed: _precondition_failed,
    e.ThreadContextChanged: thread.fold_context,
    e.Transitioned: transitioned,
    e.FieldsSet: fields_set,
    e.StepBegan: began,
    e.StepCompleted: completed,
    e.StepFailed: _failed,
    e.ActionAbandoned: _abandoned,
    e.ActionReleased: _released,
    e.LeaseRenewed: _renewed,
    e.StepOffered: _offered,
    e.StepReused: _step_reused,
    e.WalkStarted: _walk_started,
    e.RetryScheduled: _retry_scheduled,
    e.TimerArmed: _timer_armed,
    e.TimerFired: _timer_fired,
    e.TimerCancelled: _timer_cancelled,
    e.ApprovalRequested: _approval_requested,
    e.ApprovalDecided: _approval_decided,
    e.ApprovalUsed: _approval_used,
    e.ApprovalRevoked: _approval_revoked,
    e.OperationIntended: _intended,
    e.OperationSettled: _settled,
    e.OperationDisputed: _disputed,
    e.OperationRenewed: _renewed_operation,
    e.CommandConvicted: _convicted,
    e.RunTakenOver: _taken_over,
    e.RunHandedBack: _handed_back,
    e.RunEnded: _ended,
    e.ThreadJoined: thread.fold_joined,
    e.ThreadStatusSet: thread.fold_status,
    e.PolicyChanged: policy.fold_change,
    e.KillSwitchSet: policy.fold_switch,
    e.GrantChanged: grants.fold_change,
    e.Reserved: ledger.fold_reserved,
    e.ReservationSettled: ledger.fold_settled,
    e.Spent: ledger.fold_spent,
    e.ArrivalAdmitted: sender.fold_arrival,
    e.SenderBlockSet: sender.fold_block,
    e.SenderTrustSet: sender.fold_trust,
    e.OutcomeCounted: outcomes.fold_counted,
    e.ReplyJudged: judged.fold_judged,
    e.ThresholdMoved: judged.fold_moved,
}
