"""A fire that its run does not know of yet is kept, never dropped: nobody would arm that timer again (R3.3)."""

import asyncio

from tests.unit.scheduler.flaky import Side, attempts
from tests.unit.scheduler.plant import KEY, Plant

from waybook.engine.ports import TimerRef
from waybook.events.engine import TimerFired
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.effects import handed_over
from waybook.services.scheduler.hints import NoHints

PATIENCE_MS = 30_000
LEASE_MS = 60_000


class Gated(Side):
    """Its first answer comes when the gate is opened, and is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def gate(self) -> None:
        if self.calls["ask"] == 1:
            self.asked.set()
            await self.open.wait()
            raise RuntimeError("no answer")


async def test_a_fire_that_overtakes_its_run_waits_for_it_beyond_the_walker_s_patience() -> None:
    """A walker with a stale view of the run does not know the timer; the command stays until one does."""
    side = Gated()
    plant = Plant(lambda clock: side)
    await plant.walk()
    await plant.start()
    await side.asked.wait()
    await plant.until(lambda: len(plant.commands.waiting) == 1)
    run = plant.run()
    assert run is not None
    name = f"{run.version + 1}.2"  # the failure, the transition, the timer
    doer = Doer(plant.timers, plant.commands, plant.clock, NoHints())
    await doer.give([handed_over(TimerRef(KEY, name, "retry", plant.clock.now()))])
    for _ in range(2 * (PATIENCE_MS + LEASE_MS) // 5_000):
        plant.clock.advance(5_000)
        await asyncio.sleep(0.002)
        assert any(subject.endswith(".timer") for subject in plant.commands.waiting.values()), "the fire was dropped"
    assert not any(isinstance(event, TimerFired) for event in plant.events())
    side.open.set()
    await plant.until(lambda: plant.stands() == "completed", pass_ms=5_000)
    run = plant.run()
    assert run is not None and run.resolved == {name: "fired"}
    assert attempts(run, "ask") == ["failed", "completed"]
    await plant.until(lambda: not plant.commands.waiting, pass_ms=5_000)
    await plant.close()


async def test_a_fire_that_comes_twice_is_answered_once_and_acknowledged_twice() -> None:
    side = Gated()
    side.open.set()
    plant = Plant(lambda clock: side)
    await plant.walk()
    plant.schedule()
    await plant.start()
    await plant.until(lambda: plant.stands() == "completed", pass_ms=20_000)
    run = plant.run()
    assert run is not None
    [name] = run.resolved
    plant.clock.advance(3_600_000)  # the window in which its id counts as a repetition is over
    doer = Doer(plant.timers, plant.commands, plant.clock, NoHints())
    await doer.give([handed_over(TimerRef(KEY, name, "retry", plant.clock.now()))])
    await plant.until(lambda: not plant.commands.waiting)
    assert sum(isinstance(event, TimerFired) for event in plant.events()) == 1
    await plant.close()
