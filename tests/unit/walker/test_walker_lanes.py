"""Runs of another definition than a worker's own: what it does with their commands (DESIGN 3, "lanes")."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.unit.walker.office import KEY, Done, Gated, Gates, Go, Half, Office, Process, until

from waybook.adapters.memory.command_queue import MemoryDelivery
from waybook.agents import Agent, Event, ExternalEvent, step
from waybook.agents.definition import define
from waybook.agents.errors import DefinitionError
from waybook.events.command import SignalPayload
from waybook.events.headers import COMMAND, RECEIVED
from waybook.services.walker.definitions import Definitions


class Hurry(ExternalEvent, frozen=True, kw_only=True):
    """A word from outside that only the old agent knows."""


class Checked(Event, frozen=True, kw_only=True):
    """The new agent's own event."""


class Old(Agent):
    """As Gated, and it listens to a word from outside."""

    name = "gated"
    accepts = (Hurry,)

    @step
    async def first(self, go: Go, gates: Gates) -> Half:
        await gates.at("first")
        return Half()

    @step
    async def second(self, half: Half, gates: Gates) -> Done:
        await gates.at("second")
        return Done()

    @step
    async def hurry(self, word: Hurry, gates: Gates) -> None:
        gates.entered.append("hurry")


class New(Agent):
    """Other steps than Old."""

    name = "gated"

    @step
    async def check(self, go: Go, gates: Gates) -> Checked:
        gates.entered.append("check")
        return Checked()

    @step
    async def finish(self, checked: Checked) -> Done:
        return Done()


class Patched(Agent):
    """Old with other code, limits and words."""

    name = "gated"
    accepts = (Hurry,)

    @step(deadline_s=60.0)
    async def first(self, go: Go, gates: Gates) -> Half:
        """Says what it does."""
        await gates.at("first")
        await asyncio.sleep(0)
        return Half()

    @step
    async def second(self, half: Half, gates: Gates) -> Done:
        gates.entered.append("patched second")
        return Done()

    @step
    async def hurry(self, word: Hurry) -> None:
        return


LANE = define(Old).engine.hash


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


async def killed_in_first(office: Office) -> None:
    """A run of Old whose worker died in its first step."""
    old = await office.process("old", Old)
    await office.start()
    await until(lambda: old.gates.entered == ["first"])
    await old.kill()
    await office.lapse()


def forwarded(office: Office) -> list[str]:
    return [s for s in office.commands.waiting.values() if f".{LANE}." in s]


async def finished_by(office: Office, process: Process) -> None:
    process.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    run = office.run()
    assert run is not None
    assert (run.outcome, run.definition) == ("completed", LANE)


async def test_a_command_of_another_definitions_run_goes_to_its_lane_and_is_walked_there(office: Office) -> None:
    await killed_in_first(office)
    new = await office.process("new", New)
    await until(lambda: forwarded(office) == [f"cmd.new.{LANE}.cli.t.gated.r.start"])
    assert len(office.commands.waiting) == 1, "the original is acknowledged"
    assert new.gates.entered == []
    later = await office.process("later", Old)
    await finished_by(office, later)
    run = office.run()
    assert run is not None
    assert (run.failures, list(run.applied)) == ({"first": 1}, ["k1"])


async def test_the_new_definition_starts_new_runs_meanwhile(office: Office) -> None:
    await killed_in_first(office)
    new = await office.process("new", New)
    await until(lambda: bool(forwarded(office)))
    other = msgspec.structs.replace(KEY, run="r2")
    await office.start("k2", other)
    await until(lambda: (run := office.run(other)) is not None and run.outcome == "completed")
    assert new.gates.entered == ["check"]


async def test_a_walker_that_carries_the_older_definition_needs_no_lane(office: Office) -> None:
    await killed_in_first(office)
    both = await office.process("both", New, older=[Old])
    await until(lambda: both.gates.entered == ["first"])
    assert forwarded(office) == []
    await finished_by(office, both)


async def test_a_lane_waits_for_its_worker_and_holds_nothing_up(office: Office) -> None:
    await killed_in_first(office)
    await office.process("new", New)
    await until(lambda: bool(forwarded(office)))
    for _ in range(15):
        await office.lapse()
        await asyncio.sleep(0.01)
    assert len(forwarded(office)) == 1
    assert office.notes.dead == []
    both = await office.process("both", New, older=[Old])
    await finished_by(office, both)


async def test_what_the_new_definition_cannot_read_is_not_rejected_but_moved(office: Office) -> None:
    """Forwarding needs no agent code: neither the event nor the step is known here."""
    await killed_in_first(office)
    await office.process("new", New)
    await office.give("signal", SignalPayload(event="Hurry", body=msgspec.Raw(b"{}")), id="word")
    await until(lambda: len(forwarded(office)) == 2)
    assert office.notes.dead == []
    old = await office.process("later", Old)
    await until(lambda: "hurry" in old.gates.entered)
    await finished_by(office, old)
    assert office.answer("word").ok


async def test_a_payload_is_read_by_the_definition_of_its_run(office: Office) -> None:
    await killed_in_first(office)
    both = await office.process("both", New, older=[Old])
    await office.give("signal", SignalPayload(event="Hurry", body=msgspec.Raw(b"{}")), id="word")
    await until(lambda: "hurry" in both.gates.entered)
    await finished_by(office, both)


async def test_what_needs_no_definition_is_answered_by_anybody(office: Office) -> None:
    """The run is there already; it has ended; the command is applied: all of that the history alone says."""
    await killed_in_first(office)
    old = await office.process("again", Old)
    await finished_by(office, old)
    await old.stop()
    await office.process("new", New)
    for _ in range(3):
        await office.lapse()  # past the duplicate window
    await office.start("k2")
    await office.start("k1")
    await office.give("cancel", {}, id="stop")
    await until(lambda: not office.commands.waiting)
    assert office.answer("k2").already
    assert office.answer("k1").reason == "applied"
    assert office.answer("stop").reason == "terminal"


async def test_a_definition_that_differs_in_code_alone_carries_the_run_on(office: Office) -> None:
    await killed_in_first(office)
    patched = await office.process("patched", Patched)
    await until(lambda: patched.gates.entered == ["first"])
    patched.gates.open("first")
    await until(lambda: not office.commands.waiting)
    assert patched.gates.entered == ["first", "patched second"]
    run = office.run()
    assert run is not None
    assert run.definition == define(Patched).engine.hash


async def test_a_move_that_is_repeated_is_one_and_the_command_is_the_same(office: Office) -> None:
    """Between the publish and the acknowledgement a worker may die; the lane gets the command once."""
    await killed_in_first(office)
    first = await office.process("one", New)
    await until(lambda: bool(forwarded(office)))
    await first.stop()
    lane = define(Old).engine.hash
    pulled = await office.commands.pull(f"lane_{lane}", 9, 0.01)
    assert len(pulled) == 1
    moved = pulled[0]
    assert isinstance(moved, MemoryDelivery)
    assert (moved.headers[COMMAND], moved.headers["Nats-Msg-Id"]) == ("k1", f"k1@{lane}.1")
    assert int(moved.headers[RECEIVED]) < moved.received_at, "when it came first"
    again = moved.headers["Nats-Msg-Id"]
    assert not await office.commands.publish(moved.subject, moved.payload, command=again)


def test_what_may_differ_between_definitions_that_carry_each_others_runs() -> None:
    old, patched, new = (define(agent).engine for agent in (Old, Patched, New))
    assert old.hash != patched.hash
    assert old.carries(patched.hash) and patched.carries(old.hash)
    assert not old.carries(new.hash) and not old.carries(define(Gated).engine.hash)


def test_definitions_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(DefinitionError, match="given twice"):
        Definitions([define(Old), define(New)])
    with pytest.raises(DefinitionError, match="no current one"):
        Definitions([], older=[define(Old)])
