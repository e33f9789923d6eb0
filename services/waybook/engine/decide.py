"""Decide: what a command, a step's result or a fact makes of a run. Pure, synchronous, total.

Several inputs that wait for one run are decided together and become one commit; each is looked at in the order
given, on the state that the ones before it left, so the result is the same as one commit each.
"""

from collections.abc import Sequence

from waybook.engine import approvals, claims, delegation, operations, starts, takeover, windows
from waybook.engine.context import conflict
from waybook.engine.deadlines import arm_run_deadline, fail_run, run_deadline
from waybook.engine.definition import CANCEL_REQUESTED, Definition
from waybook.engine.dispatch import begin, dispatch, may_begin
from waybook.engine.errors import RowFailed
from waybook.engine.fold import seal
from waybook.engine.inputs import (
    Accepted,
    Cancel,
    ChildAnswer,
    Completed,
    Continue,
    Decide,
    Decision,
    Delivered,
    Exec,
    Failed,
    HandBack,
    Input,
    Move,
    Nothing,
    Outcome,
    Output,
    Refused,
    Released,
    Restart,
    Retry,
    Signal,
    Start,
    TakeOver,
    World,
)
from waybook.engine.intents import EFFECTS, Compensate, Renew, Settle
from waybook.engine.lanes import already_started, decide_foreign
from waybook.engine.lifecycle import (
    apply_row,
    changes,
    close,
    edge,
    end_window,
    learn,
    left_window,
    matching_row,
    move,
    names_of,
    open_window,
    said_by,
    take_row,
)
from waybook.engine.onward import onward
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.retry import fail, retry
from waybook.engine.run import NO_PERSON, Action, Run, execution_key
from waybook.engine.stall import is_asked, knows_request
from waybook.engine.times import expired
from waybook.engine.walks import kept, restart, restart_asked
from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey

NOBODY = World()


def decide(
    definition: Definition, key: RunKey, run: Run | None, inputs: Sequence[Input], now: int, world: World = NOBODY
) -> Decision:
    """The events of one commit for `inputs`, with one outcome each.

    `run` is the folded run or None when its subject is empty; it stays as it is. `now` is in ms UTC. An input
    that is refused or finds nothing to do leaves no event. A lifecycle row that raises fails the step whose result
    it was asked about, or refuses the command. A run that this definition does not carry is left as it is.
    """
    if len(inputs) == 1 and run is not None:
        one = inputs[0]
        short = onward(definition, key, run, one, now, world) if type(one) is Completed else None
        if short is not None:
            return short
    return decide_at_length(definition, key, run, inputs, now, world)


def decide_at_length(
    definition: Definition, key: RunKey, run: Run | None, inputs: Sequence[Input], now: int, world: World = NOBODY
) -> Decision:
    """`decide` without the short way for plain results (`waybook.engine.onward`), which comes to the same."""
    if run is not None and not definition.carries(run.definition):
        return Decision((), tuple(decide_foreign(run, one, now) for one in inputs), (), run)
    spoiled: dict[int, tuple[RowFailed, ...]] = {}
    while True:
        recorder = Recorder(definition, key, run, now, world)
        outcomes: list[Outcome] = []
        try:
            for one in inputs:
                outcome = _decide_one(recorder, one, spoiled.get(len(outcomes), ()))
                if recorder.failed_gate is not None:
                    _fail_by_gate(recorder, recorder.failed_gate)
                outcomes.append(outcome)
        except RowFailed as error:
            spoiled[len(outcomes)] = (*spoiled.get(len(outcomes), ()), error)
            continue
        break
    after = recorder.run if recorder.started else None
    if after is not None and recorder.events:
        seal(after, recorder.version, now, definition.hash, recorder.commands)
    return Decision(tuple(recorder.events), tuple(outcomes), tuple(recorder.commands), after, recorder.diagnostics)


def _fail_by_gate(recorder: Recorder, failed: e.PreconditionFailed) -> None:
    """A precondition raised: the run fails by its table's row for StepFailed, asked with a failure that stands for it."""
    recorder.failed_gate = None
    take_row(
        recorder,
        ("StepFailed",),
        e.StepFailed(action="", step=failed.step, error=failed.error, failures=0, exhausted=True, duration_ms=0),
    )


def commit_of(decision: Decision, definition: Definition, actor: str) -> Commit:
    """The commit that stores a decision with events; `actor` says who wrote it."""
    assert decision.run is not None and decision.events
    return Commit(
        version=decision.run.version,
        walk=decision.run.walk,
        at=decision.run.at,
        actor=actor,
        definition=definition.hash,
        events=decision.events,
        commands=decision.commands,
    )


def _decide_one(recorder: Recorder, one: Input, spoiled: tuple[RowFailed, ...]) -> Outcome:
    """`spoiled`: what rows raised when this input was decided before, on the same run."""
    if isinstance(one, Delivered):
        return Refused("row_failed", str(spoiled[0])) if spoiled else _command(recorder, one)
    if not recorder.started:
        return Refused("message_not_found", f"there is no run {recorder.key}")
    if isinstance(one, Released):
        return claims.release(recorder, one)
    if isinstance(one, EFFECTS):
        return operations.decide_effect(recorder, one)
    action = _open_action(recorder, one)
    if isinstance(action, Refused):
        return action
    if isinstance(one, Failed):
        return fail(recorder, one, action, ask_table=not spoiled)
    if spoiled:
        error = e.Failure(type="RowFailed", text=str(spoiled[0]), retryable=False)
        failed = Failed(one.action, error, one.duration_ms, model=one.model, usage=one.usage)
        return fail(recorder, failed, action, ask_table=len(spoiled) == 1)
    return _complete(recorder, one, action)


def _open_action(recorder: Recorder, result: Completed | Failed) -> Action | Refused:
    action = recorder.run.actions.get(result.action)
    if action is None:
        return Refused("unknown_action", f"run {recorder.key} has no action {result.action}")
    if action.status != "running":
        return Refused(
            "stale", f"action {result.action} is {action.status}; its result belongs to a superseded attempt"
        )
    return action


def _command(recorder: Recorder, delivered: Delivered) -> Outcome:
    command = delivered.command
    if recorder.started and command.id in recorder.run.applied:
        return claims.resume(recorder, delivered)
    if command.expires_at is not None and recorder.now > command.expires_at:
        return Refused("expired", expired(command.expires_at, recorder.now))
    version = recorder.version if recorder.events else recorder.version - 1
    if command.if_version is not None and command.if_version != version:
        return Refused("stale", f"the command holds for version {command.if_version}, the run is at {version}")
    before = len(recorder.events)
    recorder.by = command.actor if delivered.person else NO_PERSON
    outcome = _body(recorder, delivered)
    recorder.by = NO_PERSON
    if isinstance(outcome, Accepted):
        assert len(recorder.events) > before, f"{command.verb} was accepted and left no event"
        recorder.apply_command(command.id)
    return outcome


def _body(recorder: Recorder, delivered: Delivered) -> Outcome:
    body = delivered.body
    if isinstance(body, Start):
        return _start(recorder, delivered, body)
    if not recorder.started:
        return Refused("message_not_found", f"there is no run {recorder.key}")
    if isinstance(body, Continue):
        if recorder.run.timers and starts.held_by(recorder.run) is not None:
            return Nothing("nothing_due")
        ended = left_window(recorder) if recorder.definition.table.windows else None
        return _ended(recorder, delivered, ended) if ended is not None else claims.carry_on(recorder, delivered)
    if isinstance(body, Decide):
        return _answered(recorder, delivered, approvals.decide(recorder, delivered, body))
    if isinstance(body, Retry):
        approval = approvals.deadline_of(recorder.run, body.timer) if body.timer is not None else None
        if body.timer is not None and approval is not None:
            return _answered(recorder, delivered, approvals.expire(recorder, body.timer, approval))
        if body.timer is not None and operations.is_reconcile(recorder.run, body.timer):
            return operations.ask(recorder, body.timer, Holder(delivered.command.id, delivered.claim))
        if body.timer is not None and windows.is_window(recorder.run, body.timer):
            return _ended(recorder, delivered, windows.ends(recorder, body.timer))
        if body.timer is not None and starts.held_by(recorder.run) == body.timer:
            return _begin_held(recorder, delivered, body.timer)
        return _deadline(recorder, delivered, body.timer) or retry(recorder, delivered, body)
    if isinstance(body, ChildAnswer):
        return _child_answered(recorder, delivered, delegation.answer(recorder, body))
    if isinstance(body, Compensate):
        return operations.compensate(recorder, delivered.command.id)
    if isinstance(body, Renew):
        return operations.renew(recorder, body, delivered.command.actor)
    if isinstance(body, Settle):
        holder = Holder(delivered.command.id, delivered.claim)
        return operations.settle(recorder, body, holder, person=delivered.command.actor if delivered.person else None)
    if isinstance(body, Exec):
        return _exec(recorder, delivered, body)
    if isinstance(body, Move):
        return _move(recorder, delivered, body)
    if isinstance(body, Cancel):
        return _cancel(recorder, body)
    if isinstance(body, TakeOver):
        return takeover.take_over(recorder, delivered, body)
    if isinstance(body, HandBack):
        return takeover.hand_back(recorder, delivered, body)
    if isinstance(body, Restart):
        return restart_asked(recorder, delivered, body)
    return _signal(recorder, delivered, body)


def _start(recorder: Recorder, delivered: Delivered, start: Start) -> Outcome:
    if recorder.started:
        return already_started(recorder.run, start)
    definition = recorder.definition
    recorder.record(
        e.RunStarted(
            agent=definition.agent,
            definition=definition.hash,
            state=definition.table.initial,
            configuration=start.configuration,
            thread=start.thread,
            content=start.content,
            flags=start.flags,
            user=start.user,
            parent=start.parent,
        )
    )
    arm_run_deadline(recorder, start)
    wrong = definition.check_configuration(start.configuration) if definition.check_configuration is not None else None
    holder = Holder(delivered.command.id, delivered.claim)
    if wrong is None and start.begins is not None and start.begins > recorder.now:
        _record(recorder, (start.output,))
        starts.hold_back(recorder, start.begins)
    elif wrong is None:
        _publish(recorder, (start.output,), holder)
    else:
        _record(recorder, (start.output,))
        fail_run(recorder, "configuration", f"the configuration of the run does not fit: {wrong}")
    return Accepted()


def _begin_held(recorder: Recorder, delivered: Delivered, timer: str) -> Outcome:
    """A start that was held back goes on as if it had come now."""
    name = starts.begins(recorder, timer)
    started = recorder.run.event(name)
    value = recorder.definition.decode(started.event, started.schema, started.payload)
    take_row(recorder, names_of(recorder, started.event), value, name)
    names = [name, *open_window(recorder)] if recorder.window_due else [name]
    dispatch(recorder, names, Holder(delivered.command.id, delivered.claim))
    return Accepted()


def _publish(
    recorder: Recorder,
    outputs: Sequence[Output],
    holder: Holder,
    *,
    action: str | None = None,
    request: str | None = None,
    branch: str | None = None,
) -> None:
    """Stores events, then lets the table dispose of each, then begins what each makes due."""
    unhandled = tuple(recorder.run.unhandled) if recorder.run.unhandled else ()
    names = _record(recorder, outputs, action=action, request=request, branch=branch)
    for output, name in zip(outputs, names, strict=True):
        row = take_row(recorder, names_of(recorder, output.event), output.value, name)
        if row is not None and row.restart:
            reason = row.reason(recorder.run, output.value) if row.reason else None
            restart(recorder, row.name, reason, holder, keep=kept(recorder, row, output.value))
            unhandled = ()
    if recorder.definition.asks and not recorder.run.ended:
        for output, name in zip(outputs, names, strict=True):
            if recorder.definition.kinds.get(output.event) == "delegation":
                delegation.ask(recorder, name, output.value)
            elif output.event in recorder.definition.answer_within_ms:
                delegation.arm(recorder, name, recorder.definition.answer_within_ms[output.event])
    if recorder.window_due:
        names = [*names, *open_window(recorder)]
    dispatch(recorder, (*unhandled, *names) if unhandled else names, holder)


def _record(
    recorder: Recorder,
    outputs: Sequence[Output],
    *,
    action: str | None = None,
    request: str | None = None,
    branch: str | None = None,
) -> list[str]:
    """`branch`: that of the action, which its outputs carry on where they begin none of their own."""
    return [
        recorder.record(
            e.EventPublished(
                event=o.event,
                schema=o.schema,
                payload=o.payload,
                ancestors=o.ancestors,
                action=action,
                request=request,
                branch=branch if o.branch is None else o.branch,
            )
        )
        for o in outputs
    ]


def _until_the_end(recorder: Recorder, outputs: Sequence[Output]) -> Sequence[Output]:
    """The outputs up to the one that ends the run; what is behind it comes too late."""
    table = recorder.definition.table
    for index, output in enumerate(outputs[:-1], 1):
        if recorder.definition.kinds.get(output.event) != "stop":
            continue
        row = matching_row(table, recorder.run, names_of(recorder, output.event), output.value, recorder.world)
        if row is None or row.next not in table.terminal:
            continue
        for late in outputs[index:]:
            text = f"{late.event} came after {output.event}, which ends the run"
            recorder.note("late_event_discarded", text, late.event)
        return outputs[:index]
    return outputs


def _complete(recorder: Recorder, completed: Completed, action: Action) -> Outcome:
    if completed.context and (key := conflict(recorder.run.context, completed.context)) is not None:
        return _conflicted(recorder, completed, action, key)
    for contract in completed.contracts:
        approvals.ask(recorder, contract)
    outputs = completed.outputs if len(completed.outputs) < 2 else _until_the_end(recorder, completed.outputs)
    first = len(recorder.events) + 1 + bool(completed.context) + bool(completed.thread_context)
    recorder.record(
        e.StepCompleted(
            action=action.id,
            outputs=tuple(range(first, first + len(outputs))),
            duration_ms=completed.duration_ms,
            model=completed.model,
            usage=completed.usage,
            reuse_key=completed.reuse_key,
        )
    )
    if completed.context:
        recorder.record(e.ContextChanged(action=action.id, changes=completed.context))
    if completed.thread_context:
        recorder.record(e.ContextChanged(action=action.id, changes=completed.thread_context, scope="thread"))
    _publish(recorder, outputs, Holder(action.command, action.claim), action=action.id, branch=action.branch)
    return Accepted()


def _conflicted(recorder: Recorder, completed: Completed, action: Action, key: str) -> Outcome:
    """The execution wanted to swap what another one changed meanwhile: it runs again at once, on what is there now."""
    because = f"another execution changed {key} in the run context first"
    if not may_begin(recorder.definition, recorder.run):
        return fail(recorder, Failed(action.id, e.Failure("ContextConflict", because), completed.duration_ms), action)
    recorder.record(e.ActionAbandoned(action=action.id, reason="closed", because=because))
    step = recorder.definition.steps[action.step]
    begin(recorder, step, action.trigger, action.bindings, Holder(action.command, action.claim), branch=action.branch)
    return Accepted()


def _signal(recorder: Recorder, delivered: Delivered, signal: Signal) -> Outcome:
    event = signal.output.event
    kind = recorder.definition.kinds.get(event)
    if kind != "external":
        return Refused("invalid_input", f"{event} is not an external event of {recorder.definition.agent}")
    why_not = recorder.definition.table.refusals.get(event)
    special = why_not(recorder.run) if why_not is not None and delivered.person else None
    if special is not None:
        return Refused(*special)
    if recorder.run.ended and event in recorder.definition.table.facts:
        return _learn(recorder, signal.output)
    if recorder.run.ended:
        return Refused("terminal", f"the run has ended as {recorder.run.outcome}")
    if signal.request is not None and signal.request in recorder.run.answered:
        return Refused(
            "already_decided", f"request {signal.request} was answered by {recorder.run.answered[signal.request]}"
        )
    if signal.request is not None and not knows_request(recorder.run, signal.request):
        return Refused("unknown_request", f"there is no request {signal.request} in this run")
    if signal.request is not None and not is_asked(recorder.run, signal.request):
        return Refused(
            "stale", f"request {signal.request} was asked before the run was restarted, and does not stand now"
        )
    if delivered.person and not changes(recorder, signal.output):
        return Refused("illegal_edge", f"{event} changes nothing while the run is {recorder.run.state}")
    holder = Holder(delivered.command.id, delivered.claim)
    if signal.request is not None and recorder.definition.answer_within_ms:
        delegation.disarm(recorder, signal.request)
    _publish(recorder, (signal.output,), holder, request=signal.request)
    return Accepted()


def _ended(recorder: Recorder, delivered: Delivered, output: Output) -> Outcome:
    """A window is over: what its event makes due begins, or the table calls the run back."""
    dispatch(recorder, end_window(recorder, output), Holder(delivered.command.id, delivered.claim))
    return Accepted()


def _answered(recorder: Recorder, delivered: Delivered, answer: approvals.Answer | Refused) -> Outcome:
    """Tells the run what became of an approval, by the event that it asked for."""
    if isinstance(answer, Refused):
        return answer
    if answer.output is not None:
        holder = Holder(delivered.command.id, delivered.claim)
        _publish(recorder, (answer.output,), holder, request=answer.approval)
    return Accepted()


def _learn(recorder: Recorder, output: Output) -> Outcome:
    """A fact that comes after the end (`waybook.engine.telling`)."""
    row = learn(recorder, output.event, output.value)
    if row is None:
        return Nothing("nothing_due")
    _record(recorder, (output,))
    apply_row(recorder, row, output.value)
    return Accepted()


def _move(recorder: Recorder, delivered: Delivered, body: Move) -> Outcome:
    row = edge(recorder.definition.table, recorder.run.state, body.to_state)
    if isinstance(row, Refused):
        return row
    move(recorder, row.name, body.to_state, "Move", dict(body.fields), body.reason)
    if recorder.window_due:
        dispatch(recorder, open_window(recorder), Holder(delivered.command.id, delivered.claim))
    if row.restart:
        holder = Holder(delivered.command.id, delivered.claim)
        restart(recorder, row.name, body.reason, holder, keep=kept(recorder, row, body))
    return Accepted()


def _cancel(recorder: Recorder, body: Cancel) -> Outcome:
    if recorder.run.ended:
        return Refused("terminal", f"the run has ended as {recorder.run.outcome}")
    if recorder.run.children:
        delegation.cancel_children(recorder, body.reason)
    why = said_by(recorder, "cancelled", body.reason)
    if take_row(recorder, (CANCEL_REQUESTED,), body, reason=why) is None:
        close(recorder, "cancelled", reason=why)
    return Accepted()


def _deadline(recorder: Recorder, delivered: Delivered, timer: str | None) -> Outcome | None:
    """A fire of the run's deadline, or of a request's; None when the timer is something else."""
    if timer is None or recorder.run.timers.get(timer) is None:
        return None
    said = run_deadline(recorder, timer) or delegation.expire(recorder, timer)
    return _child_answered(recorder, delivered, said) if said is not None else None


def _child_answered(recorder: Recorder, delivered: Delivered, said: tuple[Output, str] | Outcome) -> Outcome:
    """Publishes the event that settles a request."""
    if not isinstance(said, tuple):
        return said
    output, request = said
    _publish(recorder, (output,), Holder(delivered.command.id, delivered.claim), request=request)
    return Accepted()


def _exec(recorder: Recorder, delivered: Delivered, body: Exec) -> Outcome:
    if body.step not in recorder.definition.steps:
        names = ", ".join(recorder.definition.steps)
        return Refused(
            "unknown_step_kind", f"{body.step!r} is no step of {recorder.definition.agent}; there are {names}"
        )
    offer = recorder.run.offers.get(execution_key(recorder.run.walk, body.step, body.trigger))
    if offer is None or not may_begin(recorder.definition, recorder.run):
        return Nothing("nothing_due")
    step = recorder.definition.steps[offer.step]
    holder = Holder(delivered.command.id, delivered.claim)
    begin(recorder, step, offer.trigger, offer.bindings, holder, branch=offer.branch)
    return Accepted()
