"""The walker keeps the claim rules: what it starts, renews, gives back, and when it says nothing (DESIGN 4, "Claims")."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.walker.office import Office, until

from waybook.engine.ports import AppendConflict, PortUnavailable
from waybook.events.engine import StepBegan


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


async def test_a_run_walks_to_its_end_and_its_command_is_acknowledged_last(office: Office) -> None:
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    assert list(office.commands.waiting) == [1]
    one.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    run = office.run()
    assert run is not None
    assert (run.outcome, one.heartbeat.held) == ("completed", 0)


async def test_heartbeats_keep_a_long_step_with_its_walker(office: Office) -> None:
    one, two = await office.process("one"), await office.process("two")
    await office.start()
    await until(lambda: one.gates.entered + two.gates.entered == ["first"])
    for _ in range(4):
        await office.lapse()
    await asyncio.sleep(0.05)
    assert one.gates.entered + two.gates.entered == ["first"]
    assert "ActionAbandoned" not in office.types()


async def test_a_killed_walker_s_step_is_taken_over_after_its_lease(office: Office) -> None:
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    await one.kill()
    two = await office.process("two")
    two.gates.open("first", "second")
    await office.lapse()
    await until(lambda: not office.commands.waiting)
    run = office.run()
    assert run is not None
    assert (run.outcome, run.failures) == ("completed", {"first": 1})


async def test_a_redelivery_to_the_walker_that_runs_the_step_renews_and_runs_nothing_twice(office: Office) -> None:
    """Rule 5; and the newer delivery is kept alive like the first."""
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    one.heartbeat.lose()
    await office.lapse()
    await until(lambda: "LeaseRenewed" in office.types())
    await office.lapse()
    await asyncio.sleep(0.05)
    assert office.types().count("LeaseRenewed") == 1
    one.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert one.gates.entered == ["first", "second"]


async def test_a_walker_whose_lease_lapsed_loses_the_step_without_a_word(office: Office) -> None:
    """Rule 3: its late result is noted in TRACE, and it acknowledges nothing; the run belongs to who took it over."""
    one = await office.process("one", slots=1)
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    one.heartbeat.lose()
    two = await office.process("two")
    await office.lapse()
    await until(lambda: two.gates.entered == ["first"])
    one.gates.open("first", "second")
    await until(lambda: one.gates.passed == ["first"] and one.heartbeat.held == 0 and len(office.notes.traced) == 1)
    assert list(office.commands.waiting) == [1]
    two.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert one.gates.entered == ["first"]
    run = office.run()
    assert run is not None
    assert (run.outcome, run.failures) == ("completed", {"first": 1})


async def test_a_delivery_that_lapsed_before_it_was_decided_is_dropped(office: Office) -> None:
    """The server was away while it waited; when it is back the command may be in other hands."""
    one = await office.process("one")
    office.state.faults.fail(AppendConflict("another was first"), PortUnavailable("gone"))
    await office.start()
    await until(lambda: one.walker.problem is not None)
    one.heartbeat.lose()
    one.gates.open("first", "second")
    await until(lambda: one.walker.problem is None)
    await office.lapse()
    await until(lambda: office.run() is not None and not office.commands.waiting)
    began = [event for event in office.events() if isinstance(event, StepBegan)]
    assert [(event.attempt, event.claim.delivery) for event in began] == [(1, 2), (1, 2)]


async def test_a_begin_that_was_stored_without_an_answer_is_run_all_the_same(office: Office) -> None:
    """After an append of unknown outcome the bodies follow the stored run, not what was seen."""
    one = await office.process("one")
    office.state.faults.lose_answers(30)
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    one.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    assert office.types().count("StepBegan") == 2


async def test_a_conflict_followed_by_an_absent_server_does_not_break_the_walker(office: Office) -> None:
    one = await office.process("one")
    office.state.faults.fail(AppendConflict("another was first"), PortUnavailable("gone"), PortUnavailable("gone"))
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    one.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)


async def test_a_graceful_stop_hands_the_step_to_another_walker_at_once_and_counts_no_failure(office: Office) -> None:
    """Rule 4: released by a commit, then given back; no lease has to run out."""
    one = await office.process("one")
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    await one.stop()
    two = await office.process("two")
    two.gates.open("first", "second")
    await until(lambda: not office.commands.waiting)
    run = office.run()
    assert run is not None
    assert (run.outcome, run.failures) == ("completed", {})
    assert "ActionReleased" in office.types()


async def test_a_start_sent_again_waits_for_the_first_and_is_then_found_applied(office: Office) -> None:
    """Another message with the same command id does not take the step from who runs it."""
    one, two = await office.process("one"), await office.process("two")
    await office.start()
    await until(lambda: one.gates.entered + two.gates.entered == ["first"])
    for _ in range(2):
        await office.lapse()
    await office.start()
    assert len(office.commands.waiting) == 2
    await asyncio.sleep(0.05)
    assert "ActionAbandoned" not in office.types()
    for process in (one, two):
        process.gates.open("first", "second")
    for _ in range(3):
        await asyncio.sleep(0.02)
        await office.lapse()
    await until(lambda: not office.commands.waiting)
    assert office.types().count("StepBegan") == 2
