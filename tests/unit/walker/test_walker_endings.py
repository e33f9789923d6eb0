"""Walkers that stop, bodies that end in odd ways, and ports that fail."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from tests.unit.walker.office import Done, Gates, Go, Half, Office, until

from waybook.agents import Agent, step
from waybook.engine.ports import StreamFull
from waybook.events.engine import ActionReleased, StepFailed

STARTED = threading.Event()
MAY_END = threading.Event()


class CancelsItself(Agent):
    """Something that its body waits for is cancelled."""

    name = "gated"

    @step
    async def first(self, go: Go) -> Done:
        other = asyncio.create_task(asyncio.sleep(10))
        asyncio.get_running_loop().call_soon(other.cancel)
        await other
        return Done()


class InAThread(Agent):
    """A plain function, which nobody can cancel."""

    name = "gated"

    @step(thread=True)
    def first(self, go: Go) -> Half:
        STARTED.set()
        MAY_END.wait(10)
        return Half()

    @step
    async def second(self, half: Half, gates: Gates) -> Done:
        await gates.at("second")
        return Done()


class Verbose(Agent):
    """Fails with a text that no commit takes."""

    name = "gated"

    @step
    async def first(self, go: Go) -> Done:
        raise ValueError("x" * 300_000)


class Slow(Agent):
    """A step that may take longer than a lease is renewed for a decision."""

    name = "gated"

    @step(deadline_s=7200.0)
    async def first(self, go: Go, gates: Gates) -> Done:
        await gates.at("first")
        return Done()

    @step(deadline_s=1.0)
    async def beside(self, go: Go) -> Half:
        return Half()


class Endless(Agent):
    """A body that never comes to an end by itself."""

    name = "gated"

    @step(deadline_s=0.05)
    async def first(self, go: Go) -> Done:
        await asyncio.Event().wait()
        return Done()


class Stubborn(Agent):
    """A body that takes no notice of its deadline, and returns after it."""

    name = "gated"

    @step(deadline_s=0.05)
    async def first(self, go: Go) -> Half:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Half()
        return Half()

    @step
    async def second(self, half: Half, gates: Gates) -> Done:
        await gates.at("second")
        return Done()


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    STARTED.clear()
    MAY_END.clear()
    yield made
    MAY_END.set()
    await made.close()


async def test_a_body_that_meets_a_cancelled_task_has_failed(office: Office) -> None:
    await office.process("one", CancelsItself)
    await office.start()
    await until(lambda: not office.commands.waiting)
    [failed] = [e for e in office.events() if isinstance(e, StepFailed)]
    assert failed.error.type == "CancelledError"


async def test_a_body_that_outlasts_its_deadline_has_failed(office: Office) -> None:
    """The worker itself ends a step at its deadline, as a failure that may be tried again."""
    await office.process("one", Endless)
    await office.start()
    await until(lambda: not office.commands.waiting)
    [failed] = [e for e in office.events() if isinstance(e, StepFailed)]
    assert failed.error.type == "StepDeadlinePassed" and failed.error.retryable


async def test_a_result_that_comes_after_the_deadline_is_a_result(office: Office) -> None:
    """A body that ends by itself when it is told to has ended, and what follows runs undisturbed."""
    one = await office.process("one", Stubborn)
    one.gates.open("second")
    await office.start()
    await until(lambda: not office.commands.waiting)
    assert office.types().count("StepCompleted") == 2 and office.types()[-1] == "RunEnded"


async def test_a_text_that_no_commit_takes_is_cut(office: Office) -> None:
    await office.process("one", Verbose)
    await office.start()
    await until(lambda: not office.commands.waiting)
    [failed] = [e for e in office.events() if isinstance(e, StepFailed)]
    assert 100 < len(failed.error.text) < 10_000


async def test_a_stop_waits_for_a_function_in_a_thread_and_gives_the_next_step_away(office: Office) -> None:
    one = await office.process("one", InAThread)
    await office.start()
    await until(STARTED.is_set)
    stopping = asyncio.create_task(one.stop())
    await asyncio.sleep(0.05)
    assert not stopping.done()
    MAY_END.set()
    await stopping
    assert office.types().count("StepCompleted") == 1
    assert [e.action for e in office.events() if isinstance(e, ActionReleased)] == ["2.2"]
    two = await office.process("two", InAThread)
    two.gates.open("second")
    await until(lambda: not office.commands.waiting)
    assert "ActionAbandoned" not in office.types()


async def test_a_stop_does_not_wait_for_ever(office: Office) -> None:
    one = await office.process("one", InAThread, stop_s=0.2)
    await office.start()
    await until(STARTED.is_set)
    await asyncio.wait_for(one.stop(), 3.0)
    assert [type(e) for e in office.events()][-1] is ActionReleased


async def test_a_stop_without_a_server_ends_and_leaves_the_leases_to_lapse(office: Office) -> None:
    one = await office.process("one", stop_s=0.2)
    await office.start()
    await until(lambda: one.gates.entered == ["first"])
    office.state.faults.away()
    await asyncio.wait_for(one.stop(), 3.0)
    office.state.faults.back()
    assert list(office.commands.waiting) == [1]


async def test_what_is_taken_while_a_walker_stops_is_given_back_at_once(office: Office) -> None:
    one = await office.process("one")
    office.state.faults.away()
    await office.start()
    await until(lambda: one.walker.problem is not None or one.heartbeat.held == 1)
    await one.walker.stop()
    office.state.faults.back()
    await one.stop()
    two = await office.process("two")
    await until(lambda: two.gates.entered == ["first"])
    assert "ActionAbandoned" not in office.types()


async def test_a_full_stream_is_no_failure_and_no_health(office: Office) -> None:
    one = await office.process("one")
    office.state.faults.fail(*(StreamFull("full") for _ in range(8)))
    await office.start()
    await until(lambda: one.walker.problem is not None)
    await asyncio.sleep(0.7)
    assert isinstance(one.walker.problem, StreamFull)
    await until(lambda: one.gates.entered == ["first"])
    assert one.walker.problem is None
    assert "StepFailed" not in office.types()


async def test_a_short_step_does_not_shorten_the_lease_of_a_long_one_beside_it(office: Office) -> None:
    one = await office.process("one", Slow)
    await office.start()
    await until(lambda: office.types().count("StepCompleted") == 1)
    for _ in range(40):
        await office.lapse()
    await asyncio.sleep(0.05)
    assert one.heartbeat.held == 1
    assert office.types().count("StepBegan") == 2
    one.gates.open("first")
    await until(lambda: not office.commands.waiting)
