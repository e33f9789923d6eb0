"""The usual decision, made short: a step ended with one event, the run goes on, and nobody is to be asked or told.

It decides what `decide` decides the long way, on the same rules: the table's rows, the binding of steps, and the
fold's own functions for every event. All that is not plain (several inputs or events, ends, failures, approvals that
stand, windows, preconditions, limits, branches, rows that raise) is left to the long way; the tests of the engine hold every
decision against that.
"""

from waybook.engine import approvals, fold
from waybook.engine.definition import FAILED, Definition, Row, Step, Way
from waybook.engine.dispatch import bind
from waybook.engine.inputs import Accepted, Completed, Decision, Output, World
from waybook.engine.recorder import Recorder
from waybook.engine.run import Action, Published, Run
from waybook.events import engine as e
from waybook.events.subjects import RunKey

ACCEPTED = (Accepted(),)


def onward(definition: Definition, key: RunKey, run: Run, result: Completed, now: int, world: World) -> Decision | None:
    """The decision on a plain result; None: it is not plain, or not this definition's, so the long way decides."""
    action = run.actions.get(result.action)
    if action is None or action.status != "running" or len(result.outputs) != 1 or not _is_plain(run, result):
        return None
    output = result.outputs[0]
    if action.branch is not None or output.branch is not None:
        return None
    ways = definition.ways
    asked = (run.state, output.event)
    way = ways[asked] if asked in ways else ways.setdefault(asked, _way(definition, run.state, output.event))
    if way is None or world.free_slots < len(way.steps) or not definition.carries(run.definition):
        return None
    after = run.copy() if way.asks else run.copy_for_step()
    version = run.version + 1
    events: list[e.EngineEvent] = []
    published = _end(after, version, result, action, output, now, events)
    try:
        _move(after, way, output, world, f"{version}.2", now, events)
        if way.asks and after.state != run.state:
            approvals.ask_for_state(Recorder.going_on(definition, key, run, now, world, after, events))
    except Exception:  # noqa: BLE001  what becomes of a row that raises is said the long way, which asks it again
        return None
    for step in way.steps:
        bindings = bind(step, after, published)
        if bindings is not None:
            _begin(after, step, bindings, action, published, f"{version}.{len(events)}", now, events)
    after.version = version
    after.at = now
    after.definition = definition.hash
    return Decision(tuple(events), ACCEPTED, (), after)


def _is_plain(run: Run, result: Completed) -> bool:
    """Whether the result brings nothing but its event, and nothing stands in the way of the run."""
    if result.contracts or result.context or result.thread_context:
        return False
    return run.outcome is None and run.taken_over is None and not run.unhandled and not run.approvals


def _way(definition: Definition, state: str, event: str) -> Way | None:
    """What an event does in a state; None where that is more than a row and the begin of steps."""
    table = definition.table
    names = (event, "StopEvent") if definition.kinds.get(event) == "stop" else (event,)
    rows = table.rows_of(state, names)
    steps = definition.takers.get(event, ())
    if definition.asks or state == FAILED or state in table.terminal or state in table.contracts:
        return None
    if state in table.windows or any(_is_special(definition, row) for row in rows):
        return None
    if any(step.name in definition.gates or step.max_executions is not None for step in steps):
        return None
    if any(parameter.kind == "fixed_list" for step in steps for parameter in step.parameters):
        return None
    return Way(rows, steps, any(row.next in table.contracts for row in rows))


def _is_special(definition: Definition, row: Row) -> bool:
    table, to_state = definition.table, row.next
    if row.restart or row.tells is not None or to_state == FAILED:
        return True
    return to_state in table.terminal or to_state in table.windows


def _end(
    after: Run,
    version: int,
    result: Completed,
    action: Action,
    output: Output,
    now: int,
    events: list[e.EngineEvent],
) -> Published:
    """The attempt's end and its event."""
    ended = e.StepCompleted(
        action=action.id,
        outputs=(1,),
        duration_ms=result.duration_ms,
        model=result.model,
        usage=result.usage,
        reuse_key=result.reuse_key,
    )
    fold.completed(after, ended, f"{version}.0", now)
    said = e.EventPublished(
        event=output.event,
        schema=output.schema,
        payload=output.payload,
        ancestors=output.ancestors,
        action=action.id,
    )
    fold.published(after, said, f"{version}.1", now)
    events.append(ended)
    events.append(said)
    return after.log[-1]


def _move(after: Run, way: Way, output: Output, world: World, name: str, now: int, events: list[e.EngineEvent]) -> None:
    """What the table's first row whose guard holds makes of the run. Raises what the row's functions raise."""
    for row in way.rows:
        if row.guard is None or row.guard(after, output.value, world):
            break
    else:
        return
    fields = dict(row.fields(after, output.value)) if row.fields is not None else {}
    if row.next is None:
        fields_set = e.FieldsSet(row=row.name, fields=fields)
        fold.fields_set(after, fields_set, name, now)
        events.append(fields_set)
        return
    reason = row.reason(after, output.value) if row.reason is not None else None
    moved = e.Transitioned(
        row=row.name, from_state=after.state, to_state=row.next, on=output.event, fields=fields, reason=reason
    )
    fold.transitioned(after, moved, name, now)
    events.append(moved)


def _begin(
    after: Run,
    step: Step,
    bindings: e.Bindings,
    action: Action,
    trigger: Published,
    name: str,
    now: int,
    events: list[e.EngineEvent],
) -> None:
    """The first attempt of the execution that the new event makes due: its name cannot be one begun before."""
    begun = e.StepBegan(
        action=name,
        step=step.name,
        trigger=trigger.name,
        attempt=1,
        walk=after.walk,
        bindings=bindings,
        command=action.command,
        claim=action.claim,
        deadline=now + step.deadline_ms,
    )
    fold.began(after, begun, name, now)
    events.append(begun)
