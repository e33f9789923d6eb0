"""Starts that are held back."""

from tests.unit.engine.definitions import CHAIN
from tests.unit.engine.history import History, output

from waybook.engine.hold import hold
from waybook.engine.inputs import Continue, Nothing, Start

LATER_MS = 90_000


def test_a_start_that_is_held_back_begins_when_its_time_has_come_and_only_once() -> None:
    """The run is stored and says why it waits; its timer begins it, and is gone then."""
    history = History(CHAIN)
    history.give(Start(output("Go"), begins=history.now + LATER_MS))
    (timer,) = history.timers()
    assert history.running() == []
    held = hold(history.definition, history.it)
    assert (held.kind, held.reason, held.until) == ("waiting", "rate_limit", history.now + LATER_MS)
    assert isinstance(history.give(Continue()), Nothing), "nobody begins it before"

    history.now += LATER_MS
    history.fire(timer)
    assert history.running() == ["one"] and history.timers() == []
    history.fire(timer)
    assert [a.step for a in history.it.actions.values()] == ["one"]


def test_a_start_whose_time_has_come_begins_at_once() -> None:
    history = History(CHAIN)
    history.give(Start(output("Go"), begins=history.now))
    assert history.running() == ["one"] and history.timers() == []
