"""A step that is out of attempts leaves no side effect behind of which nobody is told what came of it."""

from collections.abc import Callable

import pytest
from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History, accepted

from waybook.engine.definition import RetryPolicy
from waybook.engine.hold import hold
from waybook.engine.inputs import Accepted, Failed, Restart, Retry
from waybook.engine.intents import Intend, Settle
from waybook.events.engine import Failure

SENDER = build(
    "sender",
    (step("send", takes("Go"), gives="Done", retry=RetryPolicy(max_failures=1)),),
    {"Go": "start", "Done": "stop"},
)
KEY = "send/mail/reply/1"


def intended() -> History:
    """A run whose only attempt intended a mail, and nobody knows more."""
    history = History(SENDER)
    history.start()
    one = Intend(history.action("send").id, "mail", "d1", {}, key="reply", call_ms=1_000)
    assert accepted(history.one(history.apply(one)))
    return history


def lost(history: History) -> None:
    history.again("k1")


def failed(history: History) -> None:
    history.apply(Failed(history.action("send").id, Failure("StepDeadlinePassed", "too long", True), 10))


@pytest.mark.parametrize("ends", [lost, failed])
def test_what_nobody_knows_is_asked_for_when_no_attempt_is_left(ends: Callable[[History], None]) -> None:
    """The worker was lost too often, or the step's time was over: a timer has the other side asked."""
    history = intended()
    ends(history)
    assert history.it.state == "failed" and history.it.operations[KEY].outcome == "unknown"
    (timer,) = history.it.timers
    assert history.it.timers[timer].about == KEY
    held = hold(SENDER, history.it)
    assert (held.kind, held.reason) == ("reconciling", "unknown_outcome")
    history.now = history.it.timers[timer].due
    assert history.fire(timer) == Accepted(asks=(KEY,))
    assert accepted(history.one(history.apply(Settle(KEY, "succeeded", "find"))))
    assert hold(SENDER, history.it).kind in ("waiting", "dead command"), "a person decides on the run itself"
    assert history.give(Retry(None)) == Accepted()
    assert history.running() == ["send"]


def test_what_an_earlier_walk_intended_under_the_same_key_is_asked_for_too() -> None:
    """The key is the step's, so the second walk's body would have asked."""
    history = intended()
    assert accepted(history.give(Restart(()), id="again"))
    assert history.running() == ["send"] and history.it.walk == 2
    history.again("again")
    assert history.it.operations[KEY].outcome == "unknown"
    assert [timer.about for timer in history.it.timers.values()] == [KEY]


def test_what_is_known_is_left_alone() -> None:
    history = intended()
    history.apply(Settle(KEY, "failed", "call"))
    lost(history)
    assert history.it.operations[KEY].outcome == "failed" and not history.it.timers
