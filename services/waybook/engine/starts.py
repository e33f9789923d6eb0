"""Starts that are held back: the run is stored with what started it, and begins when its time has come. Pure.

A message that comes faster than its sender may send is kept like any other; only its first step waits. The hold is a
timer in the log, so it has a name, an end, and outlives every process.
"""

from waybook.engine.recorder import Recorder
from waybook.engine.run import Run
from waybook.events import engine as e

ABOUT = "start:"
"""What the timer of a start that is held back is about: this and the reason."""

RATE_LIMIT = "rate_limit"


def held_by(run: Run) -> str | None:
    """The name of the timer that ends the hold, None where the run was not held back, or is no more."""
    return next((name for name, timer in run.timers.items() if timer.about.startswith(ABOUT)), None)


def hold_back(recorder: Recorder, until: int, reason: str = RATE_LIMIT) -> None:
    """Has the run wait until `until` (ms, UTC)."""
    recorder.record(e.TimerArmed(timer_class="wait", due=until, about=f"{ABOUT}{reason}"))


def begins(recorder: Recorder, timer: str) -> str:
    """The hold is over: the name of the event that started the run."""
    recorder.record(e.TimerFired(timer=timer))
    return recorder.run.log[0].name
