"""An answer that asks to wait is a wait, not a failure, until the step's waiting budget is used up (DESIGN 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.engine.definitions import CHAIN, FORK, build, step, takes
from tests.unit.engine.history import T0, History, accepted, refused

from waybook.engine.definition import ONE_HOUR_MS, RetryPolicy
from waybook.engine.hold import hold, why
from waybook.engine.inputs import Cancel, Continue, Nothing, Retry
from waybook.engine.retry import LEAST_WAIT_MS, MOST_SPREAD_MS, spread
from waybook.engine.times import iso
from waybook.events import engine as e

SEVEN_S = 7_000
DAY_MS = 86_400_000


def waiting(asked_ms: int = SEVEN_S, definition: object = CHAIN) -> History:
    """A run whose first step was told to wait."""
    history = History(CHAIN if definition is CHAIN else definition)  # type: ignore[arg-type]
    history.start()
    history.fail(history.running()[0], not_before=T0 + asked_ms)
    return history


def types(history: History) -> list[str]:
    return [type(event).__name__ for event in history.last]


def test_the_attempt_is_given_back_and_a_timer_waits_for_the_time_that_was_named() -> None:
    """One commit; the state, the count of failures and the command are as if nothing had happened."""
    history = waiting()
    assert types(history) == ["ActionReleased", "TimerArmed"]
    released, armed = history.last
    assert isinstance(released, e.ActionReleased) and (released.reason, released.until) == ("wait", T0 + SEVEN_S)
    assert isinstance(armed, e.TimerArmed) and armed.timer_class == "wait"
    assert T0 + SEVEN_S <= armed.due <= T0 + SEVEN_S + SEVEN_S // 4
    assert (history.it.state, history.it.failures, history.it.open) == ("running", {}, {})


def test_its_command_is_done_so_that_nothing_holds_a_slot() -> None:
    history = waiting()
    assert history.again("k1") == Nothing("applied")


def test_the_next_attempt_begins_when_the_timer_fires_and_counts_no_failure() -> None:
    history = waiting()
    first = history.action("one")
    assert accepted(history.fire(history.timers()[0]))
    second = history.action("one")
    assert types(history) == ["TimerFired", "StepBegan"]
    assert (second.attempt, second.execution, second.bindings) == (2, first.execution, first.bindings)
    history.fail("one")
    assert history.action("one").failures == 1


def test_the_hold_is_a_rate_limit_with_its_end() -> None:
    history = waiting()
    held = hold(history.definition, history.it)
    assert (held.kind, held.reason, held.until) == ("waiting", "rate_limit", history.it.timers[history.timers()[0]].due)
    assert held.until is not None
    assert f"goes on at {iso(held.until)}" in why(history.definition, history.it, scheduler=True).next_move


def test_when_the_budget_is_used_up_a_wait_is_a_failure_whose_retry_is_not_earlier_than_asked() -> None:
    """An hour in all: three waits of twenty minutes, then the fourth fails, due when it was asked to."""
    history = History(CHAIN)
    history.start()
    for _ in range(3):
        history.fail("one", not_before=history.now + ONE_HOUR_MS // 3)
        history.now += ONE_HOUR_MS
        history.fire(history.timers()[0])
    assert history.it.failures == {}
    history.fail("one", not_before=history.now + ONE_HOUR_MS)
    assert types(history) == ["StepFailed", "Transitioned", "TimerArmed", "RetryScheduled"]
    scheduled = history.last[-1]
    assert isinstance(scheduled, e.RetryScheduled) and scheduled.due == history.now + ONE_HOUR_MS


def test_a_wait_longer_than_the_budget_parks_the_run_with_that_due_time() -> None:
    history = waiting(DAY_MS)
    held = hold(history.definition, history.it)
    assert (history.it.state, held.kind, held.until) == ("failed", "retry", T0 + DAY_MS)


def test_a_step_may_have_a_budget_of_its_own() -> None:
    policy = RetryPolicy(wait_budget_ms=2 * DAY_MS)
    definition = build("t", (step("s", takes("Go"), retry=policy),), {"Go": "start"})
    assert waiting(DAY_MS, definition).it.failures == {}
    nothing = build("t", (step("s", takes("Go"), retry=RetryPolicy(wait_budget_ms=0)),), {"Go": "start"})
    assert waiting(SEVEN_S, nothing).it.failures == {"s": 1}


def test_a_side_that_says_now_for_ever_uses_the_budget_up() -> None:
    policy = RetryPolicy(wait_budget_ms=3 * LEAST_WAIT_MS)
    history = History(build("t", (step("s", takes("Go"), retry=policy),), {"Go": "start"}))
    history.start()
    for _ in range(3):
        history.fail("s", not_before=history.now)
        history.fire(history.timers()[0])
    history.fail("s", not_before=history.now)
    assert history.it.failures == {"s": 1}


def test_what_cannot_be_helped_by_trying_again_is_no_wait() -> None:
    history = History(CHAIN)
    history.start()
    history.fail("one", retryable=False, not_before=T0 + SEVEN_S)
    assert history.action("one").exhausted


def test_a_wait_that_ends_while_the_run_is_failed_is_taken_up_with_the_retry() -> None:
    """When a run fails nothing new begins; on its retry it also takes up what came due meanwhile."""
    history = History(FORK)
    history.start()
    history.fail("left", not_before=T0 + SEVEN_S)
    [wait] = history.timers()
    history.fail("right")
    [retry] = [t for t in history.timers() if t != wait]
    history.now += SEVEN_S * 2
    assert accepted(history.fire(wait))
    assert (types(history), history.running()) == (["TimerFired"], [])
    history.now += 300_000
    history.fire(retry)
    assert sorted(history.running()) == ["left", "right"]


def test_the_retry_of_another_branch_does_not_cut_a_wait_short() -> None:
    """Nobody calls before the time that was named, a person's retry included."""
    history = History(FORK)
    history.start()
    history.fail("left", not_before=T0 + ONE_HOUR_MS // 2)
    history.fail("right", retryable=False)
    assert accepted(history.give(Retry()))
    assert history.running() == ["right"]
    [wait] = history.timers()
    assert history.it.timers[wait].timer_class == "wait"
    history.complete("right", "R")
    history.fire(wait)
    assert "left" in history.running()


def test_continue_does_not_cut_a_wait_short_either() -> None:
    history = waiting()
    assert history.give(Continue()) == Nothing("nothing_due")


def test_the_end_of_the_run_ends_what_waits() -> None:
    history = waiting()
    [timer] = history.timers()
    history.give(Cancel("enough"))
    assert (history.action("one").status, history.timers()) == ("abandoned", [])
    assert refused(history.give(Retry())) == "terminal"
    assert history.fire(timer) == Nothing("resolved")


@given(st.text(max_size=30), st.integers(0, DAY_MS))
def test_the_spread_is_short_beside_the_wait_and_the_same_for_the_same_run(name: str, asked_ms: int) -> None:
    assert 0 <= spread(name, asked_ms) < max(LEAST_WAIT_MS, min(MOST_SPREAD_MS, asked_ms // 4 + 1))
    assert spread(name, asked_ms) == spread(name, asked_ms)


@pytest.mark.parametrize("asked_ms", [SEVEN_S, ONE_HOUR_MS])
def test_twenty_runs_that_were_told_the_same_do_not_go_on_together(asked_ms: int) -> None:
    dues = {spread(f"t.agent.r{number}/1:s:1.1", asked_ms) for number in range(20)}
    assert len(dues) > 15
