"""A person takes a run over, and gives it back (DESIGN 4, "Lifecycle"; pipeline-spec, rows T*).

While a run is taken over nothing of it begins: no step, no retry, no side effect. What people and the outside say is still
stored, and outcomes of side effects are taken in. The table may say where a run goes that is taken over, by a row on
`TakeOverRequested`; without one it stays in its state.
"""

from waybook.engine.definition import FAILED
from waybook.engine.inputs import Accepted, Delivered, HandBack, Outcome, Refused, TakeOver
from waybook.engine.lifecycle import take_row
from waybook.engine.operations import settled_waits
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.retry import take_up_again, way_back
from waybook.engine.run import Action
from waybook.events import engine as e

CAUSE = "TakeOverRequested"


def take_over(recorder: Recorder, delivered: Delivered, body: TakeOver) -> Outcome:
    """Breaks off what runs or waits by a timer, and keeps everything else from beginning."""
    run = recorder.run
    if not delivered.person:
        return Refused("not_permitted", "only a person takes a run over")
    if run.ended:
        return Refused("terminal", f"the run has ended as {run.outcome}")
    if run.taken_over is not None:
        return Refused("taken_over", f"{run.taken_over} has taken the run over already")
    for action in (*run.open_actions(), *run.told_to_wait()):
        recorder.record(e.ActionAbandoned(action=action.id, reason="taken_over"))
    for timer in dict.fromkeys(retry.timer for retry in recorder.run.retries.values()):
        if timer in recorder.run.timers:
            recorder.record(e.TimerCancelled(timer=timer, reason="taken_over"))
    recorder.record(e.RunTakenOver(by=delivered.command.actor, reason=body.reason))
    take_row(recorder, (CAUSE,), body)
    return Accepted()


def hand_back(recorder: Recorder, delivered: Delivered, body: HandBack) -> Outcome:
    """Begins again what was broken off, what failed, and what came due meanwhile."""
    run = recorder.run
    if not delivered.person:
        return Refused("not_permitted", "only a person hands a run back")
    if run.ended:
        return Refused("terminal", f"the run has ended as {run.outcome}")
    if run.taken_over is None:
        return Refused("not_taken_over", "nobody has taken the run over")
    recorder.record(e.RunHandedBack(by=delivered.command.actor, reason=body.reason))
    if recorder.run.state != FAILED or way_back(recorder) is not None:
        take_up_again(recorder, _broken_off(recorder), Holder(delivered.command.id, delivered.claim))
    return Accepted()


def _broken_off(recorder: Recorder) -> list[Action]:
    """The newest attempts of this walk's executions that ended without a result, but for those that wait for one."""
    run, steps = recorder.run, recorder.definition.steps
    newest = [run.actions[a] for key, a in run.executions.items() if key.startswith(f"{run.walk}:")]
    ended = [a for a in newest if a.status in ("failed", "abandoned", "released") and a.id not in run.waiting]
    again = [a for a in ended if a.status != "failed" or steps[a.step].stop_on_error]
    return [*again, *settled_waits(run)] if run.waiting else again
