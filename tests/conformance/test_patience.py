"""When a case counts as one that never comes to rest, and what is said of it then."""

import asyncio

import pytest
from tests.conformance.dispatcher import world as dispatcher_world
from tests.conformance.dispatcher.interpreter import run_case
from tests.conformance.dispatcher.publish import perform
from tests.conformance.dispatcher.world import opened
from tests.conformance.patience import LOOK_S, NoRest, Patience
from tests.conformance.pipeline.backends import MemoryBackend, in_memory
from tests.conformance.test_own_cases import CASES

from waybook.engine.ports import ANY_LANE

PAUSE_S = 30.0
CASE = next(case for case in CASES if case.id == "redelivered-after-the-end")


class Skipping:
    """The running loop's time, which `skip` moves on as if the process had not been run for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._skipped = 0.0
        monkeypatch.setattr(loop, "time", self.time)

    def time(self) -> float:
        return self._real() + self._skipped

    def skip(self, seconds: float) -> None:
        self._skipped += seconds


async def test_a_process_that_was_not_run_for_long_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of the whole process while a command waits says nothing of the walkers."""
    skipping = Skipping(monkeypatch)
    assert dispatcher_world.PATIENCE_S < PAUSE_S
    asyncio.get_running_loop().call_soon(skipping.skip, PAUSE_S)  # right when the first start was stored
    await run_case(CASE, in_memory, workers=8)


async def test_looking_for_long_is_over_at_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses count for LOOK_S, so that even a process that is hardly ever run gives up."""
    skipping = Skipping(monkeypatch)
    patience = Patience(10 * LOOK_S)
    for _ in range(10):
        skipping.skip(PAUSE_S)
        over = patience.look()
    assert not over
    skipping.skip(PAUSE_S)
    skipping.skip(PAUSE_S)
    assert patience.look() or patience.look()
    assert "the longest pause between them 60.0 s" in str(patience)


async def test_what_never_comes_to_rest_says_how_each_worker_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that nobody takes: slots and pulls of each worker, and what keeps it from taking any."""
    monkeypatch.setattr(dispatcher_world, "PATIENCE_S", 0.05)
    backend = MemoryBackend()
    await backend.ports.commands.ensure_consumers(ANY_LANE)
    async with opened(CASE, backend, workers=2) as world:
        world.define()
        world.staff()
        await perform(world, CASE.publish[0])
        backend.commands.faults.away()
        with pytest.raises(NoRest) as caught:
            await world.settle()
    said = str(caught.value)
    assert said.startswith("still moving: case-start-3 cmd.new.any.gw.case.workflow.r1.start (waiting); ")
    for worker in ("worker-1", "worker-2"):
        assert f"{worker}: new_any 0 of 64 taken, ctl_any 0 of 16 taken, step_any 0 of 16 taken, pulls 0 of " in said
    assert said.count("the server is away") == 2
