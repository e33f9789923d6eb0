"""A walker tells its hook what happens, once, and in the words of `waybook.engine.hooks`."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec
import pytest
from tests.unit.walker.office import KEY, Done, Gated, Gates, Go, Half, Office, Process, until

from waybook.agents import Agent, step
from waybook.engine.hooks import (
    ClaimsLost,
    CommandBuried,
    CommandMoved,
    CommandRefused,
    CommandsTaken,
    CommitStored,
    ConflictMet,
    StepEnded,
)
from waybook.events.subjects import command_subject

D = TypeVar("D")


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


def told(process: Process, kind: type[D]) -> list[D]:
    return [details for details in process.told if type(details) is kind]


class Failing(Agent):
    """Its first step fails for good."""

    name = "gated"

    @step
    async def first(self, go: Go, gates: Gates) -> Half:
        raise RuntimeError("no")

    @step
    async def second(self, half: Half) -> Done:
        return Done()


async def test_a_walk_tells_its_command_its_commits_and_its_steps(office: Office) -> None:
    """As many commits as are stored, with their events and sizes; each step ends once, after its commit is stored."""
    one = await office.process("one")
    one.gates.open("first", "second")
    await office.start()
    await until(lambda: not office.commands.waiting)
    assert told(one, CommandsTaken) == [CommandsTaken("new_any", 1, 0)]
    commits = told(one, CommitStored)
    assert [c.size for c in commits] == [len(record.payload) for record in office.state.records]
    assert sum(c.events for c in commits) == len(office.events())
    assert all(c.agent == "gated" and c.took_s >= 0 for c in commits)
    ends = told(one, StepEnded)
    assert [(e.agent, e.step, e.outcome) for e in ends] == [
        ("gated", "first", "completed"),
        ("gated", "second", "completed"),
    ]
    assert all(e.duration_ms is not None for e in ends)
    assert set(map(type, one.told)) == {CommandsTaken, CommitStored, StepEnded}


async def test_a_failed_attempt_is_told_and_the_last_one_as_exhausted(office: Office) -> None:
    one = await office.process("one", Failing)
    await office.start()
    await until(lambda: bool(told(one, StepEnded)))
    for number in (2, 3):
        await office.give("retry", {}, id=f"again{number}")
        await until(lambda number=number: len(told(one, StepEnded)) == number)  # type: ignore[misc]
    assert [e.outcome for e in told(one, StepEnded)] == ["failed", "failed", "exhausted"]


async def test_a_lost_attempt_is_told_by_who_takes_it_over(office: Office) -> None:
    """A redelivery, then the abandoned attempt and the one that succeeds."""
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    await one.kill()
    two = await office.process("two")
    two.gates.open("first", "second")
    await office.lapse()
    await until(lambda: not office.commands.waiting)
    assert told(one, StepEnded) == []
    assert told(two, CommandsTaken) == [CommandsTaken("new_any", 1, 1)]
    ends = [(e.step, e.outcome) for e in told(two, StepEnded)]
    assert ends == [("first", "abandoned"), ("first", "completed"), ("second", "completed")]
    assert told(two, StepEnded)[0].duration_ms is None


async def test_a_graceful_stop_tells_what_it_gives_back(office: Office) -> None:
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    assert one.walker.state.taken == {"new_any": 1, "ctl_any": 0, "step_any": 0, one.lanes[0].name: 0}
    await one.stop()
    assert [(e.step, e.outcome) for e in told(one, StepEnded)] == [("first", "released")]
    assert sum(one.walker.state.taken.values()) == 0


async def test_a_conflict_is_told_and_the_commit_that_lost_is_not(office: Office) -> None:
    """Two walkers, one paused past its lease: what it writes then meets the other's commit."""
    one = await office.process("one", slots=1)  # it takes no second delivery
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    one.alive = False  # nobody tells it
    one.heartbeat.lose()
    two = await office.process("two")
    two.gates.open("first", "second")
    await office.lapse()
    await until(lambda: not office.commands.waiting)
    stored = len(told(one, CommitStored))
    one.gates.open("first")
    await until(lambda: bool(told(one, ConflictMet)))
    assert told(one, ConflictMet) == [ConflictMet("gated")]
    await asyncio.sleep(0.02)
    assert len(told(one, CommitStored)) == stored


async def test_refusals_and_burials_are_told_with_their_reasons(office: Office) -> None:
    """A command for an agent that nobody has, and one that is no command."""
    one = await office.process("one")
    stranger = msgspec.structs.replace(KEY, agent="stranger")
    await office.start("k1", stranger)
    await until(lambda: bool(told(one, CommandRefused)))
    assert told(one, CommandRefused) == [CommandRefused("unknown_agent")]
    await office.commands.publish(command_subject(KEY, "start", issuer="cli"), b"noise", command="k2")
    await until(lambda: bool(told(one, CommandBuried)))
    assert told(one, CommandBuried) == [CommandBuried("rejected")]


async def test_a_command_that_is_moved_to_a_lane_is_told(office: Office) -> None:
    """A walker with other steps than those under which the run began."""
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    await one.stop()

    class Other(Gated):
        name = "gated"

        @step
        async def third(self, half: Half) -> None:
            return None

    two = await office.process("two", Other)
    await until(lambda: bool(told(two, CommandMoved)))
    assert told(two, CommandMoved) == [CommandMoved()]


async def test_lost_claims_are_told(office: Office) -> None:
    one = await office.process("one")
    await asyncio.sleep(0)
    one.walker.claims_lost()
    await until(lambda: bool(told(one, ClaimsLost)))
