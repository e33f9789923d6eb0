"""Runs of a definition that a worker does not carry: what it says of them, and what it leaves to their lane."""

import msgspec
import pytest
from tests.unit.engine.definitions import CHAIN, FORK
from tests.unit.engine.history import T0, History, output

from waybook.engine.decide import decide
from waybook.engine.definition import Definition
from waybook.engine.hold import DeadCommand, hold, why
from waybook.engine.inputs import (
    Body,
    Cancel,
    Completed,
    Continue,
    Exec,
    Input,
    Move,
    Nothing,
    Outcome,
    Refused,
    Released,
    Retry,
    Signal,
    Start,
)
from waybook.engine.lease import Ack, Forward, Silent, settle
from waybook.events.engine import Claim

NO_WORKER = Nothing("no_worker")


def named(definition: Definition, hash: str) -> Definition:
    return Definition.build(
        agent=definition.agent,
        hash=hash,
        steps=tuple(definition.steps.values()),
        table=definition.table,
        kinds=definition.kinds,
        decode=definition.decode,
    )


OTHER = named(FORK, "d2")


def started() -> History:
    history = History(CHAIN)
    history.start()
    return history


def asked(history: History, one: Input) -> Outcome:
    """What a worker with another definition decides; it never leaves an event."""
    decision = decide(OTHER, history.key, history.run, [one], history.now)
    assert decision.events == ()
    return decision.outcomes[0]


def test_definitions_with_one_shape_carry_each_others_runs() -> None:
    one = named(CHAIN, "0123456789abcdef")
    assert one.carries("0123456789abcdef") and one.carries("0123456700000000")
    assert not one.carries("0123456f89abcdef")
    assert not one.carries("01234567"), "no hash of this kind"
    assert one.carries(""), "facts of system aggregates have no definition"


@pytest.mark.parametrize(
    "body",
    [Signal(output("Answer")), Move("failed"), Retry(), Retry("1.1"), Cancel("x"), Continue(), Exec("one", "1.1")],
)
def test_what_a_command_does_to_a_foreign_run_is_left_to_its_lane(body: Body) -> None:
    history = started()
    assert asked(history, history.command(body)) == NO_WORKER


def test_results_and_releases_of_a_foreign_run_are_left_alone() -> None:
    history = started()
    action = history.action("one").id
    assert asked(history, Completed(action, (output("A"),))) == NO_WORKER
    assert asked(history, Released((action,))) == NO_WORKER


def test_a_redelivery_of_an_open_command_is_the_lanes_and_of_an_applied_one_anybodys() -> None:
    history = started()
    again = history.command(Start(output("Go")), id="k1", claim=Claim(1, 1, 2))
    assert asked(history, again) == NO_WORKER
    history.again("k1", later=3)
    assert asked(history, again) == Nothing("superseded")
    history.complete("one")
    assert asked(history, again) == Nothing("applied")


def test_a_start_for_a_foreign_run_is_answered_here() -> None:
    """Mails that are taken in again after an upgrade are found there, whoever can carry their runs on."""
    history = History(CHAIN)
    history.apply(history.command(Start(output("Go"), content="c"), id="k1", claim=Claim(1, 1, 1)))
    assert asked(history, history.command(Start(output("Go"), content="c"))) == Nothing("already_there")
    refused = asked(history, history.command(Start(output("Go"), content="another")))
    assert getattr(refused, "reason", None) == "message_id_reused"


def test_an_expired_command_is_refused_before_it_is_moved() -> None:
    history = started()
    command = history.command(Cancel("x"))
    late = msgspec.structs.replace(command, command=msgspec.structs.replace(command.command, expires_at=T0 - 1))
    assert getattr(asked(history, late), "reason", None) == "expired"


def test_after_its_end_a_foreign_run_refuses_people_and_has_nothing_due() -> None:
    history = started()
    history.give(Cancel("enough"))
    history.complete("one")
    assert asked(history, history.command(Cancel("again"))) == Refused("terminal", "the run has ended as cancelled")
    assert asked(history, history.command(Continue())) == Nothing("nothing_due")
    assert asked(history, history.command(Retry("1.1"))) == Nothing("nothing_due")


def test_a_command_is_moved_to_the_lane_of_the_run_unless_its_lease_is_broken() -> None:
    history = started()
    claim = Claim(9, 1, 1)
    assert settle(history.run, "k9", claim, NO_WORKER) == Forward("d1")
    assert settle(history.run, "k9", claim, NO_WORKER, broken=True) == Silent()
    assert settle(history.run, "k9", claim, Nothing("already_there")) == Ack()


def test_the_hold_of_a_foreign_run_depends_on_whether_its_lane_is_taken() -> None:
    history = started()
    history.complete("one", "A")
    held = hold(OTHER, history.it)
    assert (held.kind, held.reason) == ("no worker", "definition")
    assert "d1" in why(OTHER, history.it).next_move
    assert hold(OTHER, history.it, elsewhere=True).kind == "none"
    assert why(OTHER, history.it, elsewhere=True).next_move == "running two (attempt 1)"
    history.fail("two")
    assert hold(OTHER, history.it, elsewhere=True).kind == "retry"
    history.give(Cancel("enough"))
    assert hold(OTHER, history.it).kind == "none"


def test_what_a_foreign_run_waits_for_is_named_by_its_state() -> None:
    """Its table is not known here."""
    history = started()
    history.complete("one")
    held = hold(OTHER, history.it, elsewhere=True)
    assert (held.kind, held.reason) == ("waiting", "running")


def test_a_command_given_up_holds_a_run_until_it_moves_while_nothing_runs() -> None:
    history = started()
    dead = DeadCommand("k9", "signal", "delivered 11 times", history.now + 5)
    assert hold(CHAIN, history.it, dead=dead).kind == "none", "a step runs"
    history.complete("one")
    held = hold(CHAIN, history.it, dead=dead)
    assert (held.kind, held.reason) == ("dead command", "undelivered")
    assert "signal (k9)" in why(CHAIN, history.it, dead=dead).next_move
    assert hold(CHAIN, history.it, dead=msgspec.structs.replace(dead, command="k1")).kind == "none", "it was applied"
    history.now += 10
    history.give(Move("failed"))
    assert hold(CHAIN, history.it, dead=dead).reason == "exhausted"
