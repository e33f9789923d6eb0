"""The lifecycle table's rule: a step proposes, the table disposes, decide writes (DESIGN 4)."""

from collections.abc import Callable
from typing import Any, TypeVar

from waybook.engine import approvals, windows
from waybook.engine.definition import CANCEL_REQUESTED, Row, Table
from waybook.engine.errors import RowFailed
from waybook.engine.inputs import Output, Refused, World
from waybook.engine.operations import leave_to_reconcile
from waybook.engine.recorder import Recorder
from waybook.engine.run import Run
from waybook.engine.telling import tell
from waybook.events import engine as e

T = TypeVar("T")


def matching_row(table: Table, run: Run, on: tuple[str, ...], event: Any, world: World) -> Row | None:
    """The first row of the run's state, for one of the names in `on`, whose guard holds. Raises RowFailed."""
    if run.ended:
        return None
    for row in table.rows_of(run.state, on):
        if row.guard is None or asked(row, row.guard, run, event, world):
            return row
    return None


def asked(row: Row, question: Callable[..., T], *given: Any) -> T:
    """What the author's function of a row answers. Raises RowFailed for whatever it raises."""
    try:
        return question(*given)
    except Exception as error:
        raise RowFailed(row.name, error) from error


def take_row(
    recorder: Recorder, on: tuple[str, ...], event: Any, name: str | None = None, reason: str | None = None
) -> Row | None:
    """Applies the first matching row for `event`, if any, with all that entering its next state brings.

    `name` is that of the published event; the one that ends a run is kept as its result. `reason` stands where the row
    gives none of its own. Raises RowFailed.
    """
    row = matching_row(recorder.definition.table, recorder.run, on, event, recorder.world)
    if row is not None:
        apply_row(recorder, row, event, on[0], name, reason)
    return row


def apply_row(
    recorder: Recorder, row: Row, event: Any, on: str = "", name: str | None = None, reason: str | None = None
) -> None:
    """Applies a row that was found for `event`: what it tells, its fields, its next state. Raises RowFailed."""
    fields = dict(asked(row, row.fields, recorder.run, event)) if row.fields is not None else {}
    if row.tells is not None:
        tell(recorder, row, event)
    if row.next is None:
        recorder.record(e.FieldsSet(row=row.name, fields=fields))
        if recorder.definition.table.contracts and not recorder.run.ended:
            approvals.ask_for_state(recorder)
        return
    reason = asked(row, row.reason, recorder.run, event) if row.reason is not None else reason
    move(recorder, row.name, row.next, on, fields, reason, name)


def learn(recorder: Recorder, event: str, value: Any) -> Row | None:
    """The row by which a run that has ended takes a fact, None where it knows it already. Raises RowFailed."""
    run, table = recorder.run, recorder.definition.table
    for row in table.rows:
        if row.on != event or row.next is not None or row.state not in (run.state, "*"):
            continue
        if row.guard is None or asked(row, row.guard, run, value, recorder.world):
            return row
    return None


def move(
    recorder: Recorder,
    row: str,
    to_state: str,
    on: str,
    fields: dict[str, Any],
    reason: str | None,
    result: str | None = None,
    *,
    again: bool = False,
) -> None:
    """Writes a transition; a terminal state ends the run and closes what is open in the same commit.

    `again`: a retry repeats it; the approvals that it led to stand.
    """
    from_state = recorder.run.state
    recorder.record(
        e.Transitioned(row=row, from_state=from_state, to_state=to_state, on=on, fields=fields, reason=reason)
    )
    table = recorder.definition.table
    if to_state in table.terminal:
        close(recorder, to_state, result, reason if on == CANCEL_REQUESTED else None)
        return
    if table.windows:
        windows.moved(recorder, from_state, again=again)
    if table.contracts and not again:
        approvals.moved(recorder, from_state)


def open_window(recorder: Recorder) -> tuple[str, ...]:
    """Ends a window that is over as it begins; the names of what is to be dispatched."""
    if not recorder.window_due:
        return ()
    recorder.window_due = False
    return end_window(recorder, windows.output(recorder, recorder.definition.table.windows[recorder.run.state]))


def end_window(recorder: Recorder, ended: Output) -> tuple[str, ...]:
    """Publishes the event of a window that is over; the names of what is to be dispatched.

    Where the table calls the run back nothing is published, so that no step begins.
    """
    names, table = names_of(recorder, ended.event), recorder.definition.table
    row = matching_row(table, recorder.run, names, ended.value, recorder.world)
    if row is not None and row.next is not None:
        take_row(recorder, names, ended.value)
        return ()
    name = recorder.record(e.EventPublished(event=ended.event, schema=ended.schema, payload=ended.payload))
    take_row(recorder, names, ended.value, name)
    return (name,)


def left_window(recorder: Recorder) -> Output | None:
    """What ends a window now, though no timer fired: nothing would ever end it, or the table calls it back."""
    window = recorder.definition.table.windows.get(recorder.run.state)
    if window is None:
        return None
    if windows.pending(recorder.run) is None:
        return windows.output(recorder, window) if windows.is_forgotten(recorder, window) else None
    ended = windows.output(recorder, window)
    names = names_of(recorder, ended.event)
    row = matching_row(recorder.definition.table, recorder.run, names, ended.value, recorder.world)
    return ended if row is not None and row.next is not None else None


def close(recorder: Recorder, outcome: str, result: str | None = None, reason: str | None = None) -> None:
    """Ends the run: abandons open actions, takes back approvals that stand, cancels pending timers."""
    for action in recorder.run.unfinished():
        recorder.record(e.ActionAbandoned(action=action.id, reason="closed"))
    if recorder.run.approvals:
        approvals.revoke_all(recorder, "closed")
    for timer in list(recorder.run.timers):
        recorder.record(e.TimerCancelled(timer=timer, reason="closed"))
    if recorder.run.operations:
        leave_to_reconcile(recorder)
    recorder.record(e.RunEnded(outcome=outcome, result=result, reason=reason))


def edge(table: Table, from_state: str, to_state: str) -> Row | Refused:
    """The row by which a direct lifecycle call may go from one state to another, guards aside."""
    if to_state not in table.states:
        names = ", ".join(sorted(table.states))
        return Refused("invalid_input", f"{to_state!r} is not a state; there are {names}")
    if from_state in table.terminal:
        return Refused("terminal", f"{from_state} is final; nothing leads on from it")
    for row in table.rows:
        if row.next == to_state and row.direct and row.leads_from(from_state):
            return row
    return Refused("illegal_edge", f"no row leads from {from_state} to {to_state}")


def said_by(recorder: Recorder, what: str, reason: str | None) -> str:
    """Whose word made the run move, and why, for its history: `what` is what the person did."""
    return f"{what} by {recorder.by}" + (f": {reason}" if reason else "")


def names_of(recorder: Recorder, event: str) -> tuple[str, ...]:
    """The names under which a table may list an event: its own, and `StopEvent` for a stop event."""
    if recorder.definition.kinds.get(event) == "stop":
        return (event, "StopEvent")
    return (event,)


def changes(recorder: Recorder, output: Output) -> bool:
    """Whether an event from outside does anything now: a table that knows its type decides, else it is stored."""
    names = names_of(recorder, output.event)
    table = recorder.definition.table
    if any(row.on in names for row in table.rows):
        return matching_row(table, recorder.run, names, output.value, recorder.world) is not None
    return True
