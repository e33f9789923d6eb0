"""Leases: what a process owes to its deliveries, asked one by one (`waybook.engine.lease`)."""

import pytest
from tests.unit.engine.definitions import CHAIN, FORK, build, step, takes
from tests.unit.engine.history import History, output

from waybook.engine.definition import RetryPolicy
from waybook.engine.inputs import (
    Accepted,
    Completed,
    Continue,
    Input,
    Nothing,
    Outcome,
    Refused,
    Retry,
    Signal,
    Start,
    World,
)
from waybook.engine.lease import (
    Ack,
    Again,
    Bury,
    GiveBack,
    Keep,
    Silent,
    give_back,
    is_expired,
    is_suspect,
    questions,
    reconcile,
    settle,
    suspects,
)
from waybook.events.engine import Claim

FIRST, SECOND = Claim(1, 1, 1), Claim(1, 1, 2)


def chain() -> History:
    history = History(CHAIN)
    history.start()
    return history


def test_a_command_is_kept_while_an_action_under_it_is_open_and_acknowledged_after() -> None:
    history = chain()
    assert settle(history.run, "k1", FIRST, Accepted()) == Keep()
    history.complete("one")
    assert settle(history.run, "k1", FIRST) == Ack()


def test_a_superseded_delivery_stays_silent() -> None:
    history = chain()
    history.again("k1")
    assert settle(history.run, "k1", FIRST) == Silent()
    assert settle(history.run, "k1", FIRST, Nothing("superseded")) == Silent()
    assert settle(history.run, "k1", SECOND) == Keep()


def test_a_convicted_command_is_buried_by_whoever_gets_it() -> None:
    history = History(build("t", (step("s", takes("Go"), retry=RetryPolicy(1)),), {"Go": "start"}))
    history.start()
    history.again("k1")
    assert settle(history.run, "k1", SECOND, Accepted()) == Bury("s lost its worker 1 times")
    assert settle(history.run, "k1", Claim(1, 1, 3), Nothing("applied")) == Bury("s lost its worker 1 times")


@pytest.mark.parametrize("outcome", [Refused("message_not_found", ""), Nothing("unknown_timer")])
def test_a_command_that_overtook_what_it_speaks_of_waits_for_a_while(outcome: Outcome) -> None:
    assert settle(None, "k", FIRST, outcome, waited_ms=29_999) == Again()
    assert settle(None, "k", FIRST, outcome, waited_ms=0, patience_ms=0) != Again()


def test_patience_ends_in_a_refusal_and_for_a_timer_in_silence() -> None:
    """A fire of an unknown timer is kept, never acknowledged."""
    assert settle(None, "k", FIRST, Refused("message_not_found", ""), waited_ms=30_000) == Ack()
    assert settle(None, "k", FIRST, Nothing("unknown_timer"), waited_ms=30_000) == Silent()


def test_a_command_in_the_queue_twice_waits_for_the_other_message() -> None:
    assert settle(chain().run, "k1", Claim(8, 1, 1), Nothing("elsewhere"), waited_ms=10**9) == Again()


def test_a_broken_lease_answers_no_refusal_but_what_is_applied_may_be_acknowledged_by_anyone() -> None:
    history = chain()
    history.complete("one")
    assert settle(history.run, "other", FIRST, Refused("illegal_edge", ""), broken=True) == Silent()
    assert settle(history.run, "k1", FIRST, broken=True) == Ack()


def test_bodies_follow_the_stored_run() -> None:
    """They start for running actions under the claim held here, and end with them."""
    history = History(FORK)
    history.start()
    left, right = history.action("left"), history.action("right")
    assert reconcile(history.run, {"k1": FIRST}, []).start == (left, right)
    assert reconcile(history.run, {"k1": FIRST}, [left.id]).start == (right,)
    assert reconcile(history.run, {"k1": SECOND}, [left.id]).cancel == (left.id,)
    history.complete("left")
    assert reconcile(history.run, {"k1": FIRST}, [left.id, right.id]).cancel == (left.id,)
    history.signal("Answer")
    assert reconcile(None, {"k1": FIRST}, [left.id]).cancel == (left.id,)


def test_released_actions_have_no_body() -> None:
    history = chain()
    history.release("one")
    assert reconcile(history.run, {"k1": FIRST}, []).start == ()


def test_a_stopping_process_gives_back_only_what_it_released_and_surely_still_holds() -> None:
    history = chain()
    assert give_back(history.run, "k1", FIRST) == Silent(), "its action still runs"
    history.release("one")
    assert give_back(history.run, "k1", FIRST) == GiveBack()
    assert give_back(history.run, "k1", FIRST, broken=True) == Silent()
    history.again("k1")
    assert give_back(history.run, "k1", FIRST) == Silent(), "another process took it over"
    history.complete("one")
    assert give_back(history.run, "k1", SECOND) == Ack()


def test_a_delivery_that_was_never_decided_is_given_back_at_a_stop() -> None:
    assert give_back(None, "k", FIRST) == GiveBack()


def test_a_delivery_that_lapsed_before_it_was_decided_is_dropped() -> None:
    """Unless an append of unknown outcome made it the holder of actions after all."""
    history = chain()
    assert not is_expired(None, "k1", SECOND, broken=False)
    assert is_expired(history.run, "k1", SECOND, broken=True)
    assert not is_expired(history.run, "k1", FIRST, broken=True)


def test_the_queue_is_asked_for_foreign_actions_on_continue_and_for_commands_that_moved() -> None:
    history = History(FORK)
    history.start()
    left, right = history.action("left").id, history.action("right").id
    carry_on = history.command(Continue())
    assert questions(history.run, [carry_on], [left]) == {1}
    assert questions(history.run, [carry_on], [left, right]) == frozenset()
    again = history.command(Start(output("Go")), id="k1", claim=Claim(8, 1, 1))
    assert questions(history.run, [again], []) == {1}
    assert questions(history.run, [history.command(Signal(output("Answer")))], []) == frozenset()
    assert questions(None, [carry_on], []) == frozenset()


def test_a_command_with_a_lost_worker_is_a_suspect_and_a_closed_action_is_no_loss() -> None:
    history = chain()
    assert not is_suspect(history.run, "k1")
    history.again("k1")
    assert is_suspect(history.run, "k1")
    assert not is_suspect(None, "k1")


def begun_by(history: History, *inputs: Input, world: World | None = None) -> frozenset[str]:
    return suspects(history.decide(*inputs, world=world or World()))


def test_the_attempt_after_a_loss_is_a_suspects_whoever_begins_it() -> None:
    """The redelivery itself; `continue` for a command that is gone; a person's retry of a convicted run."""
    history = chain()
    assert begun_by(history, history.command(Start(output("Go")), id="k1", claim=SECOND)) == {"k1"}
    gone = World(gone=frozenset({1}))
    assert begun_by(history, history.command(Continue(), id="c"), world=gone) == {"c"}
    history = History(build("t", (step("s", takes("Go"), retry=RetryPolicy(1)),), {"Go": "start"}))
    history.start()
    again = history.command(Start(output("Go")), id="k1", claim=SECOND)
    assert begun_by(history, again) == frozenset(), "it begins nothing: the loss convicts it"
    history.apply(again)
    assert begun_by(history, history.command(Retry(), id="p")) == {"p"}


def test_a_suspect_stays_one_for_all_that_begins_under_its_command() -> None:
    history = chain()
    history.again("k1")
    result = Completed(history.action("one").id, (output("A"),))
    assert begun_by(history, result) == {"k1"}


def test_errors_renewals_and_releases_make_no_suspect() -> None:
    history = chain()
    history.release("one")
    assert begun_by(history, history.command(Start(output("Go")), id="k1", claim=SECOND)) == frozenset()
    history = chain()
    renewal = history.command(Start(output("Go")), id="k1", claim=SECOND, held=FIRST)
    assert begun_by(history, renewal) == frozenset()
    history.fail("one")
    assert begun_by(history, history.command(Retry(), id="p")) == frozenset()


def test_another_command_of_a_suspects_run_is_none_when_it_begins_something_else() -> None:
    history = History(FORK)
    history.start()
    history.complete("left", "L")
    history.again("k1")
    history.complete("right", "R")
    assert begun_by(history, history.command(Signal(output("Answer")), id="s")) == frozenset()
