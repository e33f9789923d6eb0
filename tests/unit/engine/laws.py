"""What must hold of every history of a run, whatever led to it. Asked of the stored commits alone."""

from tests.unit.engine.history import History

from waybook.engine.definition import FAILED, Definition, Table
from waybook.engine.fold import apply
from waybook.engine.run import Run, execution_key
from waybook.events import engine as e

AFTER_THE_END = (e.OperationSettled, e.OperationDisputed, e.TimerArmed, e.TimerFired, e.TimerCancelled)


def check(history: History) -> None:
    """Walks through the history event by event and checks every law at each."""
    run: Run | None = None
    for commit, _, _ in history.stored:
        for index, event in enumerate(commit.events):
            before = run.copy() if run is not None else None
            if before is not None:
                _check_event(history.definition, before, event)
            run = apply(run, event, f"{commit.version}.{index}", commit.at, history.key)
            _check_run(history.definition, run)
        assert run is not None
        _check_rest(run)


def _check_event(definition: Definition, run: Run, event: e.EngineEvent) -> None:
    assert not run.ended or isinstance(event, AFTER_THE_END), f"{event} follows the end of the run"
    if isinstance(event, e.Transitioned):
        _check_edge(definition.table, run, event)
    elif isinstance(event, e.StepBegan | e.StepOffered):
        _check_begin(definition, run, event)
    elif isinstance(event, e.StepCompleted):
        _check_completion(run, event)
    elif isinstance(event, e.StepReused):
        assert run.actions[event.action].status == "completed"
    elif isinstance(event, e.TimerFired | e.TimerCancelled):
        assert event.timer in run.timers


def _check_edge(table: Table, run: Run, event: e.Transitioned) -> None:
    """Every transition leaves the state that the run is in, along a row of the table; terminal states are final."""
    assert event.from_state == run.state
    assert run.state not in table.terminal
    assert event.from_state != event.to_state or event.to_state == FAILED, f"{event.from_state} leads to itself"
    rows = [r for r in table.rows if r.next == event.to_state and r.state in (event.from_state, "*")]
    assert any(r.name == event.row for r in rows), f"no row {event.row} from {event.from_state} to {event.to_state}"


def _check_begin(definition: Definition, run: Run, event: e.StepBegan | e.StepOffered) -> None:
    """Nothing begins in a terminal state or in `failed`, nothing completed begins again, bindings obey the prefix."""
    assert run.state not in definition.table.terminal
    assert run.state != FAILED, "something begins in `failed`"
    key = execution_key(event.walk, event.step, event.trigger)
    before = run.executions.get(key)
    if before is not None:
        assert run.actions[before].status in ("failed", "abandoned", "released", "waiting"), (
            f"{key} is {run.actions[before]}"
        )
        assert run.actions[before].bindings == event.bindings, "an attempt of the same execution binds other events"
    if isinstance(event, e.StepBegan):
        assert event.attempt == (run.actions[before].attempt + 1 if before is not None else 1)
    trigger = run.event(event.trigger)
    bound = [n for value in event.bindings.values() if value for n in ((value,) if isinstance(value, str) else value)]
    assert event.trigger in bound, "a binding contains its trigger"
    assert max(run.event(name).ordinal for name in bound) == trigger.ordinal, "the trigger is the last event bound"


def _check_completion(run: Run, event: e.StepCompleted) -> None:
    action = run.actions[event.action]
    assert action.status == "running"
    twins = [a for a in run.actions.values() if a.execution == action.execution and a.status == "completed"]
    assert twins == [], f"{action.execution} completes twice"


def _check_run(definition: Definition, run: Run) -> None:
    assert run.state in definition.table.states
    assert set(run.open) <= _under_way(run)
    executions = [run.actions[a].execution for a in run.open]
    assert len(executions) == len(set(executions)), "two attempts of one execution are open"
    assert not run.ended or not run.open, "an ended run has open actions"
    waiting = {a.id for a in run.actions.values() if a.status == "waiting"} & set(run.executions.values())
    assert set(run.waiting) == waiting
    assert not run.ended or not run.waiting, "something waits in an ended run"
    pending = [t for t in run.timers.values() if t.about not in run.operations]
    assert not run.ended or not pending, "an ended run has pending timers"


def _check_rest(run: Run) -> None:
    """Between commits an attempt that is not over has a command, or waits as it was told to."""
    waiting = {a.id for a in run.told_to_wait()}
    assert set(run.open) == _under_way(run) - waiting
    assert all(a.status == "released" and a.execution in run.retries for a in run.actions.values() if a.id in waiting)


def _under_way(run: Run) -> set[str]:
    return {a.id for a in run.actions.values() if a.status in ("running", "released")} & set(run.executions.values())
