"""The deadline of a whole run, and ends of a run that no step brought about."""

from waybook.engine.definition import FAILED
from waybook.engine.delegation import cancel_children
from waybook.engine.inputs import Accepted, Outcome, Start
from waybook.engine.lifecycle import close
from waybook.engine.recorder import Recorder
from waybook.events import engine as e

ABOUT_RUN = "run"
"""What the timer of a run's deadline is about."""


def arm_run_deadline(recorder: Recorder, start: Start) -> None:
    """Arms the deadline of a run that begins: the one it was started with, else its agent's."""
    within = start.deadline_ms if start.deadline_ms is not None else recorder.definition.run_deadline_ms
    if within is not None:
        recorder.record(e.TimerArmed(timer_class="deadline", due=recorder.now + within, about=ABOUT_RUN))


def run_deadline(recorder: Recorder, timer: str) -> Outcome | None:
    """The outcome of a fire of the run's deadline; None when that is not what the timer is."""
    pending = recorder.run.timers.get(timer)
    if pending is None or pending.about != ABOUT_RUN:
        return None
    recorder.record(e.TimerFired(timer=timer))
    seconds = (pending.due - recorder.run.started_at) / 1000
    fail_run(recorder, "deadline", f"the run was still open {seconds:g} s after it began, its deadline")
    return Accepted()


def fail_run(recorder: Recorder, row: str, reason: str) -> None:
    """Ends the run with an error; nothing takes it up again."""
    state = recorder.run.state
    if state != FAILED:
        recorder.record(e.Transitioned(row=row, from_state=state, to_state=FAILED, on=row, reason=reason))
    cancel_children(recorder, reason)
    close(recorder, FAILED, reason=reason)
