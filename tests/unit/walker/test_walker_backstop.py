"""What is delivered again and again without ever being decided is given up (claims, rule 9)."""

import logging
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.unit.walker.office import KEY, Office, until

from waybook.engine.hold import hold
from waybook.engine.ports import ANY_LANE, CTL_ANY, NEW_ANY, ConsumerSpec
from waybook.services.reading.dead import last_given_up


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


async def deliver(office: Office, times: int, consumer: ConsumerSpec = NEW_ANY) -> bytes:
    """Takes the command so often and gives it back, as processes do that die on it; its bytes."""
    await office.commands.ensure_consumers(ANY_LANE)
    payload = b""
    for _ in range(times):
        [delivery] = await office.commands.pull(consumer.name, 1, 0.0)
        payload = delivery.payload
        await delivery.nak()
    return payload


async def test_the_eleventh_delivery_without_a_commit_goes_to_dead_as_it_came(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    await office.start()
    payload = await deliver(office, 10)
    with caplog.at_level(logging.CRITICAL):
        await office.process("one")
        await until(lambda: not office.commands.waiting)
    [dead] = office.notes.dead
    assert (dead.subject, dead.payload) == ("dead.cmd.new.any.cli.t.gated.r.start", payload)
    assert office.run() is None
    assert (office.answer("k1").ok, office.answer("k1").reason) == (False, "undelivered")
    assert [getattr(r, "action", "") for r in caplog.records if r.levelno == logging.CRITICAL] == [
        "command_undelivered"
    ]


async def test_the_tenth_is_walked(office: Office) -> None:
    await office.start()
    await deliver(office, 9)
    one = await office.process("one")
    one.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    run = office.run()
    assert run is not None
    assert run.outcome == "completed"


async def test_a_command_that_reached_the_log_is_never_given_up_by_its_count(office: Office) -> None:
    """Lost attempts are counted in STATE; restarts and renewals raise the broker's count without a fault."""
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    await one.stop()
    await deliver(office, 20)
    two = await office.process("two")
    two.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert office.notes.dead == []
    run = office.run()
    assert run is not None
    assert (run.outcome, run.failures) == ("completed", {})


async def test_why_names_the_dead_command_until_the_run_moves_again(office: Office) -> None:
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    one.gates.open("first")
    await until(lambda: one.gates.entered == ["first", "second"])
    await one.stop()
    [kept] = await office.commands.pull(NEW_ANY.name, 1, 0.0)
    await kept.ack()  # an operator's error: nothing wakes the run any more
    await office.give("continue", {}, id="go-on")
    await deliver(office, 10, CTL_ANY)
    two = await office.process("two")
    await until(lambda: not office.commands.waiting)
    await two.stop()

    run, dead = office.run(), await last_given_up(office.notes, KEY)
    assert run is not None and dead is not None
    assert (dead.command, dead.verb) == ("go-on", "continue")
    definition = two.walker.definitions.of(KEY, run).engine
    held = hold(definition, run, dead=dead)
    assert (held.kind, held.reason) == ("dead command", "undelivered")
    assert "go-on" in held.text
    moved = msgspec.structs.replace(run, at=dead.at + 1)
    assert hold(definition, moved, dead=dead).kind == "none"
