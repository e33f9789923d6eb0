"""Dispatch by the prefix rule: which executions an event makes due, and with what bindings.

An event is looked at with the log up to itself and no further. Every binding contains its trigger, so
(walk, step, trigger) names an execution (spec/dispatcher-spec.md, section 5).
"""

from collections.abc import Collection, Sequence

from waybook.engine.definition import FAILED, Definition, Parameter, Step
from waybook.engine.errors import GateFailed
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.run import Published, Run, execution_key
from waybook.events import engine as e


def bind(step: Step, run: Run, trigger: Published) -> e.Bindings | None:
    """The bindings of `step` for `trigger`, or None while a required input is missing."""
    bindings: e.Bindings = {}
    for parameter in step.parameters:
        if parameter.kind == "required" and trigger.event in parameter.types:  # as most are
            bindings[parameter.name] = trigger.name
            continue
        filled, value = _fill(parameter, run, trigger)
        if not filled:
            return None
        bindings[parameter.name] = value
    return bindings


def branch_of(run: Run, bindings: e.Bindings, label: str) -> str | None:
    """The branch of an execution whose trigger carries `label`: None where it joins events of several branches.

    Events without a label decide nothing.
    """
    for bound in bindings.values():
        for name in (bound,) if isinstance(bound, str) else reversed(bound or ()):
            if run.event(name).branch not in (label, None):
                return None
    return label


def _fill(parameter: Parameter, run: Run, trigger: Published) -> tuple[bool, str | tuple[str, ...] | None]:
    if parameter.kind in ("required", "optional"):
        if trigger.event in parameter.types:
            return True, trigger.name
        latest = _latest(parameter.types, run, trigger.ordinal)
        return (parameter.kind == "optional" or latest is not None), latest
    found = _all(parameter.types, run, trigger.ordinal)
    if parameter.kind == "fixed_list":
        return len(found) == parameter.size, found
    if parameter.kind == "optional_list":
        return True, found or None
    return bool(found), found


def _latest(types: tuple[str, ...], run: Run, until: int) -> str | None:
    """Name of the most recent event of these types with an ordinal up to `until`."""
    best: Published | None = None
    for name in types:
        for published in reversed(run.visible.get(name, ())):
            if published.ordinal <= until:
                if best is None or published.ordinal > best.ordinal:
                    best = published
                break
    return best.name if best is not None else None


def _all(types: tuple[str, ...], run: Run, until: int) -> tuple[str, ...]:
    found = [p for name in types for p in run.visible.get(name, ()) if p.ordinal <= until]
    found.sort(key=lambda p: p.ordinal)
    return tuple(p.name for p in found)


def may_begin(definition: Definition, run: Run) -> bool:
    """Whether anything may begin: not in a terminal state, not in `failed`, not while a person has taken the run over."""
    if run.ended or run.state == FAILED or run.taken_over is not None:
        return False
    return run.state not in definition.table.terminal


def dispatch(recorder: Recorder, names: Sequence[str], holder: Holder) -> None:
    """Begins, or offers, every execution that the events `names`, in order, make due and that has not begun.

    A precondition that raises fails the run; events not looked at by then wait for it to go on.
    """
    for index, name in enumerate(names):
        if recorder.failed_gate is not None or not may_begin(recorder.definition, recorder.run):
            return
        try:
            _dispatch(recorder, recorder.run.event(name), holder)
        except GateFailed as error:
            _fail(recorder, error, name, tuple(names[index:]))


def _dispatch(recorder: Recorder, trigger: Published, holder: Holder, *, gated: bool = True) -> None:
    """Not `gated`: without the steps that have a precondition."""
    definition = recorder.definition
    for step in definition.takers.get(trigger.event, ()):
        key = execution_key(recorder.run.walk, step.name, trigger.name)
        if key in recorder.run.executions or key in recorder.run.offers:
            continue
        bindings = bind(step, recorder.run, trigger)
        if bindings is None:
            note_overflow(recorder, step, trigger)
            continue
        if step.max_executions is not None and limit_reached(step, recorder.run):
            text = f"{step.name} was executed {step.max_executions} times; {trigger.event} {trigger.name} starts it no more"
            recorder.note("max_executions_reached", text)
            continue
        if definition.gates and step.name in definition.gates and not (gated and _may_pass(recorder, step, trigger)):
            continue
        branch = branch_of(recorder.run, bindings, trigger.branch) if trigger.branch is not None else None
        begin_or_offer(recorder, step, trigger.name, bindings, holder, branch=branch)


def _may_pass(recorder: Recorder, step: Step, trigger: Published) -> bool:
    """What the step's precondition says. Raises GateFailed."""
    try:
        answer = recorder.definition.gates[step.name](recorder.run, trigger)
    except Exception as error:
        raise GateFailed(step.name, error) from error
    if answer is None:
        text = f"the precondition of {step.name} needs an event that {trigger.event} {trigger.name} came before"
        recorder.note("precondition_unbound", text)
    return bool(answer)


def _fail(recorder: Recorder, error: GateFailed, trigger: str, waiting: tuple[str, ...]) -> None:
    """Keeps that the precondition raised; `decide` then fails the run, and nothing more begins."""
    failure = e.Failure(type=type(error.cause).__name__, text=str(error), retryable=False)
    recorder.failed_gate = e.PreconditionFailed(step=error.step, trigger=trigger, error=failure, waiting=waiting)
    recorder.record(recorder.failed_gate)


def note_overflow(recorder: Recorder, step: Step, trigger: Published) -> None:
    """Remarks, once, that a fixed list got one event too many and will never be complete again."""
    for parameter in step.parameters:
        if parameter.kind != "fixed_list" or trigger.event not in parameter.types:
            continue
        assert parameter.size is not None
        if len(_all(parameter.types, recorder.run, trigger.ordinal)) == parameter.size + 1:
            text = f"{step.name}: {parameter.name} takes exactly {parameter.size}, and {trigger.name} is one more"
            recorder.note("fixed_list_overflow", text)


def limit_reached(step: Step, run: Run) -> bool:
    """Whether the walk holds as many executions of `step` as it may; attempts at one execution count once."""
    if step.max_executions is None:
        return False
    prefix = execution_key(run.walk, step.name, "")
    begun = sum(key.startswith(prefix) for key in run.executions)
    return begun + sum(key.startswith(prefix) for key in run.offers) >= step.max_executions


def begin_or_offer(
    recorder: Recorder, step: Step, trigger: str, bindings: e.Bindings, holder: Holder, *, branch: str | None
) -> None:
    """Begins an execution under `holder` while this worker has a free slot, else asks for another worker."""
    if recorder.free > 0:
        begin(recorder, step, trigger, bindings, holder, branch=branch)
        return
    walk = recorder.run.walk
    recorder.record(e.StepOffered(step=step.name, trigger=trigger, walk=walk, bindings=bindings, branch=branch))


def begin(
    recorder: Recorder, step: Step, trigger: str, bindings: e.Bindings, holder: Holder, *, branch: str | None = None
) -> str:
    """Begins the next attempt at an execution under `holder`; returns the action's id."""
    run = recorder.run
    previous = run.executions.get(execution_key(run.walk, step.name, trigger))
    attempt = run.actions[previous].attempt + 1 if previous is not None else 1
    action = recorder.next_name()
    recorder.free -= 1
    recorder.record(
        e.StepBegan(
            action=action,
            step=step.name,
            trigger=trigger,
            attempt=attempt,
            walk=run.walk,
            bindings=bindings,
            command=holder.command,
            claim=holder.claim,
            deadline=recorder.now + step.deadline_ms,
            branch=branch,
        )
    )
    return action


def dispatch_all(recorder: Recorder, holder: Holder, *, fresh: Collection[str] | None = ()) -> None:
    """Begins what is due: offers as far as there are slots, then what was never begun (claims, rule 7).

    A precondition was asked when its trigger came, and what it said then stands: it is asked again only about
    `fresh` events, which were not looked at yet; None: about all.
    """
    if not may_begin(recorder.definition, recorder.run):
        return
    for offer in list(recorder.run.offers.values()):
        if recorder.free > 0:
            step = recorder.definition.steps[offer.step]
            begin(recorder, step, offer.trigger, offer.bindings, holder, branch=offer.branch)
    names = sorted((p for events in recorder.run.visible.values() for p in events), key=lambda p: p.ordinal)
    for index, published in enumerate(names):
        try:
            _dispatch(recorder, published, holder, gated=fresh is None or published.name in fresh)
        except GateFailed as error:
            waiting = tuple(p.name for p in names[index:] if fresh is None or p.name in fresh)
            _fail(recorder, error, published.name, waiting)
            return


def _lacking(parameter: Parameter, run: Run) -> str | None:
    """What a required input waits for, or None."""
    there = sum(len(run.visible.get(t, ())) for t in parameter.types)
    types, size = "|".join(parameter.types), parameter.size
    if parameter.kind != "fixed_list" or size is None or there == 0:
        return types if there == 0 else None
    if there == size:
        return None
    return f"{types} ({there} of {size})" if there < size else f"{types} ({there}, never {size} again)"


def missing_inputs(definition: Definition, run: Run) -> dict[str, tuple[str, ...]]:
    """For each step that has not run in this walk: the event types that a required input still waits for.

    Of a fixed list with how many there are: `R (2 of 3)`, or `R (4, never 3 again)`.
    """
    ran = {a.step for a in run.actions.values() if a.walk == run.walk}
    answer: dict[str, tuple[str, ...]] = {}
    for step in definition.steps.values():
        if step.name in ran:
            continue
        lacking = tuple(text for p in step.parameters if not p.is_optional and (text := _lacking(p, run)) is not None)
        if lacking:
            answer[step.name] = lacking
    return answer
