"""Windows: states that a run enters to do something a while later, unless it is called back before. Pure.

Entering the state arms a timer; its fire publishes the window's event, which the table disposes of like any other: where
a row without a next state takes it a step may begin, a row with one calls it back. With no delay the event is published
in the same commit. Leaving the state takes the timer back.
"""

import msgspec

from waybook.engine.definition import FAILED, Window
from waybook.engine.errors import RowFailed
from waybook.engine.inputs import Output
from waybook.engine.recorder import Recorder
from waybook.engine.run import Run
from waybook.events import engine as e

ABOUT = "window:"
"""What a window's timer is about: this and the state."""


def pending(run: Run) -> str | None:
    """The name of the timer that ends the window of the run's state, None when there is none."""
    about = f"{ABOUT}{run.state}"
    return next((name for name, timer in run.timers.items() if timer.about == about), None)


def is_window(run: Run, timer: str) -> bool:
    """Whether a pending timer ends a window."""
    armed = run.timers.get(timer)
    return armed is not None and armed.about.startswith(ABOUT)


def moved(recorder: Recorder, from_state: str, *, again: bool) -> None:
    """The run left a state for another one. `again`: a retry repeats that; a window that was over stays over."""
    if from_state in recorder.definition.table.windows:
        about = f"{ABOUT}{from_state}"
        for name in [n for n, timer in recorder.run.timers.items() if timer.about == about]:
            recorder.record(e.TimerCancelled(timer=name, reason="left"))
    recorder.window_due = False
    window = recorder.definition.table.windows.get(recorder.run.state)
    if window is None or (again and recorder.run.visible.get(window.event)):
        return
    delay = window.delay_ms(recorder.run, recorder.world)
    if delay > 0:
        due = recorder.now + delay
        recorder.record(e.TimerArmed(timer_class=window.timer_class, due=due, about=f"{ABOUT}{recorder.run.state}"))
    else:
        recorder.window_due = True


def output(recorder: Recorder, window: Window) -> Output:
    """The event that ends a window, made from the run as it stands. Raises RowFailed for whatever making it raises."""
    schema = recorder.definition.schemas.get(window.event, 1)
    try:
        payload = msgspec.Raw(msgspec.json.encode(window.fields(recorder.run)))
        value = recorder.definition.decode(window.event, schema, payload)
    except Exception as error:
        raise RowFailed(f"window of {recorder.run.state}", error) from error
    return Output(window.event, schema, payload, value)


def ends(recorder: Recorder, timer: str) -> Output:
    """A window's timer fired: the event to publish."""
    window = recorder.definition.table.windows[recorder.run.timers[timer].about.removeprefix(ABOUT)]
    recorder.record(e.TimerFired(timer=timer))
    return output(recorder, window)


def is_forgotten(recorder: Recorder, window: Window) -> bool:
    """Whether the run stands in a window that no timer will end, and of which nothing came."""
    run = recorder.run
    idle = not run.open and not run.waiting and not run.offers and run.state != FAILED
    return idle and not window.is_over(run)
