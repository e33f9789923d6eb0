"""Commands whose worker was lost run alone in their process, so that a second death convicts one and costs nobody else."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.walker.office import KEY, Office, Process, until

from waybook.engine.run import Run
from waybook.events.subjects import RunKey

RUNS = tuple(RunKey("t", "gated", f"r{number}") for number in range(4))


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


async def start_all(office: Office) -> None:
    for key in RUNS:
        await office.start(f"start-{key.run}", key)


async def dead_with_all_in_flight(office: Office) -> None:
    """A process that dies while it runs every run's first step."""
    await start_all(office)
    process = await office.process("one")
    await until(lambda: len(process.gates.entered) == len(RUNS))
    await process.kill()
    await office.lapse()


async def alone(process: Process, entered: int = 1) -> None:
    """Returns when one body more has begun, and no other came beside it."""
    await until(lambda: len(process.gates.entered) == entered)
    await asyncio.sleep(0.05)
    assert len(process.gates.entered) == entered, "another runs beside it"


def runs(office: Office) -> list[Run]:
    found = [office.run(key) for key in RUNS]
    assert all(run is not None for run in found)
    return [run for run in found if run is not None]


async def test_suspects_run_one_after_the_other_and_each_lost_one_attempt(office: Office) -> None:
    await dead_with_all_in_flight(office)
    two = await office.process("two")
    await alone(two)
    two.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert two.gates.most == 1
    assert [(run.outcome, run.failures) for run in runs(office)] == [("completed", {"first": 1})] * len(RUNS)


async def test_what_kills_its_process_again_is_convicted_and_its_neighbours_lose_nothing_more(office: Office) -> None:
    """Three deaths: the first costs each neighbour one attempt, the others cost them none."""
    await dead_with_all_in_flight(office)
    for name in ("two", "three"):
        process = await office.process(name)
        await alone(process)
        await process.kill()
        await office.lapse()
    four = await office.process("four")
    four.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert [(run.state, run.failures) for run in runs(office)] == [
        ("failed", {"first": 3}), *[("completed", {"first": 1})] * (len(RUNS) - 1)
    ]  # fmt: skip
    assert list(runs(office)[0].convicted) == ["start-r0"]
    assert [record.subject for record in office.notes.dead] == ["dead.cmd.new.any.cli.t.gated.r0.start"]


async def test_a_suspect_waits_until_what_runs_beside_it_has_ended(office: Office) -> None:
    two = await office.process("two", slots=1)
    await office.start()
    await until(lambda: two.gates.entered == ["first"])
    await office.start("other", RUNS[0])
    one = await office.process("one", slots=1)
    await until(lambda: one.gates.entered == ["first"])
    await one.kill()
    await two.stop()
    assert office.run() is not None

    three = await office.process("three", slots=1)
    await until(lambda: three.gates.entered == ["first"])
    await office.lapse()
    four = await office.process("four")
    await alone(four)
    await three.kill()
    await office.lapse()
    await asyncio.sleep(0.05)
    assert four.gates.entered == ["first"], "the second suspect waits for the first"
    four.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert four.gates.most == 1


async def test_nothing_new_is_taken_beside_a_suspect_and_everything_after_it(office: Office) -> None:
    await dead_with_all_in_flight(office)
    two = await office.process("two")
    await alone(two)
    await office.start("new", KEY)
    await asyncio.sleep(0.05)
    assert office.run() is None
    two.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    run = office.run()
    assert run is not None
    assert (run.outcome, run.failures) == ("completed", {})


async def test_what_waits_for_its_turn_keeps_its_lease_for_as_long_as_that_takes(office: Office) -> None:
    await dead_with_all_in_flight(office)
    two = await office.process("two")
    await alone(two)
    for _ in range(15):
        await office.lapse()
        await asyncio.sleep(0.02)
        two.walker.solitude.keep()
    assert two.heartbeat.held == len(RUNS)
    two.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert [run.failures for run in runs(office)] == [{"first": 1}] * len(RUNS)


async def test_what_waits_for_its_turn_is_given_back_at_a_stop(office: Office) -> None:
    await dead_with_all_in_flight(office)
    two = await office.process("two")
    await alone(two)
    await two.stop()
    three = await office.process("three")
    three.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert three.gates.most == 1
    assert [(run.outcome, run.failures) for run in runs(office)] == [("completed", {"first": 1})] * len(RUNS)


async def test_a_waiting_suspect_whose_lease_broke_is_left_to_others(office: Office) -> None:
    await dead_with_all_in_flight(office)
    two = await office.process("two")
    await alone(two)
    two.heartbeat.lose()
    three = await office.process("three")
    three.gates.open("first", "second")
    two.gates.open("first", "second")
    for _ in range(3):
        await office.lapse()
        await asyncio.sleep(0.02)
    await until(lambda: not office.commands.waiting)
    assert [run.outcome for run in runs(office)] == ["completed"] * len(RUNS)
    assert max(run.failures["first"] for run in runs(office)) <= 2
