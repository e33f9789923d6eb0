"""Walks: numbered passes over a run's graph (DESIGN 4, "Retry").

A retry goes on in the walk it is in. A true restart is a new walk: its steps bind the start event, events from
outside, and outputs of what it keeps; everything else runs again.
"""

from typing import Any

from waybook.engine import approvals
from waybook.engine.definition import RESTART_REQUESTED, Row
from waybook.engine.delegation import forget_requests
from waybook.engine.dispatch import dispatch_all
from waybook.engine.inputs import Accepted, Delivered, Outcome, Refused, Restart
from waybook.engine.lifecycle import asked, names_of, take_row
from waybook.engine.recorder import Holder, Recorder
from waybook.events import engine as e


def kept(recorder: Recorder, row: Row, event: Any) -> tuple[str, ...]:
    """The completed actions whose results stand in the walk that `row` begins. Raises RowFailed."""
    if row.keeps is None:
        return ()
    named = set(asked(row, row.keeps, recorder.run, event))
    return tuple(a.id for a in recorder.run.actions.values() if a.id in named and a.status == "completed")


def restart(recorder: Recorder, row: str, reason: str | None, holder: Holder, *, keep: tuple[str, ...] = ()) -> None:
    """Starts a new walk, because of the lifecycle row `row`, and begins it under `holder`.

    What is open is abandoned and counts as no failure. The row's name is the walk's token: executions of one token
    never stand for those of another. The start event is put before the table again, as when the run began. `keep` names
    actions whose results stand in the new walk as well.
    """
    for action in recorder.run.unfinished():
        recorder.record(e.ActionAbandoned(action=action.id, reason="taken_over"))
    for retry in list(recorder.run.retries.values()):
        if retry.timer in recorder.run.timers:
            recorder.record(e.TimerCancelled(timer=retry.timer, reason="restarted"))
    if recorder.run.approvals:
        approvals.revoke_all(recorder, "restarted")
    recorder.record(e.WalkStarted(n=recorder.run.walk + 1, keep=keep, token=row, by=recorder.by, reason=reason or row))
    forget_requests(recorder, f"{recorder.run.key.agent} {recorder.run.key.run} was restarted")
    start = recorder.run.log[0]
    value = recorder.definition.decode(start.event, start.schema, start.payload)
    take_row(recorder, names_of(recorder, start.event), value, start.name)
    dispatch_all(recorder, holder, fresh=None)


def restart_asked(recorder: Recorder, delivered: Delivered, body: Restart) -> Outcome:
    """A person or a program wants the run walked anew, where its lifecycle has a way for that."""
    run = recorder.run
    if run.ended:
        return Refused("terminal", f"the run has ended as {run.outcome}")
    for action in body.keep:
        found = run.actions.get(action)
        if found is None or found.status != "completed":
            return Refused("invalid_input", f"{action} is no completed action of this run, so it cannot be kept")
    if run.state != recorder.definition.table.initial and take_row(recorder, (RESTART_REQUESTED,), body) is None:
        return Refused(
            "illegal_edge", f"the lifecycle of {run.agent} has no row for {RESTART_REQUESTED} in {run.state}"
        )
    restart(recorder, "restart", body.reason, Holder(delivered.command.id, delivered.claim), keep=body.keep)
    return Accepted()
