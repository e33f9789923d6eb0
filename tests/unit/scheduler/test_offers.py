"""Executions for which their committer had no slot are offered, and begun by way of the scheduler."""

import asyncio
from collections import Counter

from tests.unit.scheduler.flaky import Go, Side
from tests.unit.scheduler.plant import CODEC, Plant

from waybook.adapters.memory.clock import ManualClock
from waybook.agents import Agent, Event, ExternalEvent, step
from waybook.events.engine import StepBegan, StepCompleted, StepOffered
from waybook.events.subjects import RunKey

PIECES = 10


class Piece(Event, frozen=True, kw_only=True):
    """One of many."""

    number: int


class Splitting(Agent):
    """Makes many pieces at once, each a step's work."""

    name = "flaky"  # the run that a plant starts

    @step
    async def split(self, go: Go) -> list[Piece]:
        return [Piece(number=number) for number in range(PIECES)]

    @step
    async def work(self, piece: Piece, side: Side) -> None:
        side.ask(f"piece {piece.number}")
        await side.gate()


class GatedSide(Side):
    """Answers when `opened` is set."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(now=clock.now)
        self.opened = asyncio.Event()

    async def gate(self) -> None:
        await self.opened.wait()


async def test_a_fan_out_beyond_the_slots_of_one_commit_is_worked_off() -> None:
    """Three of ten begin at once, seven are offered; each is worked on once, whatever the order."""
    plant = Plant()
    await plant.walk(Splitting, executions=3)
    plant.schedule()
    await plant.start()
    await plant.until(lambda: plant.side.calls["ask"] == PIECES and not plant.commands.waiting)
    await plant.until(lambda: not plant.notices.behind and not plant.commands.waiting)
    assert {name for name in plant.side.calls if name.startswith("piece")} == {f"piece {n}" for n in range(PIECES)}
    assert plant.side.calls["ask"] == PIECES
    offered = [event for event in plant.events() if isinstance(event, StepOffered)]
    assert len(offered) == PIECES - 3
    assert sum(isinstance(event, StepBegan) and event.step == "work" for event in plant.events()) == PIECES
    await plant.close()


def begun_by(plant: Plant) -> Counter[str]:
    """How many executions of `work` each walker began."""
    commits = [CODEC.decode(record.payload) for record in plant.state.records]
    return Counter(c.actor for c in commits for e in c.events if isinstance(e, StepBegan) and e.step == "work")


async def test_offered_executions_are_taken_over_by_other_workers() -> None:
    """The walker that splits begins what it has slots for; others begin what it offered, and nothing twice."""
    plant = Plant()
    for name in ("first", "second", "third"):
        await plant.walk(Splitting, name=name, executions=2, step_slots=1)
    plant.schedule()
    await plant.start()
    await plant.until(lambda: plant.side.calls["ask"] == PIECES and not plant.commands.waiting)
    begun = begun_by(plant)
    assert begun.total() == PIECES
    assert len(begun) > 1, begun
    assert plant.side.calls["ask"] == PIECES
    await plant.close()


async def test_what_a_worker_offered_outlives_it() -> None:
    """The walker that offered dies; its own executions come again with its command, the offered ones by the scheduler."""
    plant = Plant(GatedSide)
    await plant.walk(Splitting, name="first", executions=3)
    await plant.start()
    await plant.until(lambda: sum(isinstance(event, StepOffered) for event in plant.events()) == PIECES - 3)
    await plant.close()
    assert isinstance(plant.side, GatedSide)
    plant.side.opened.set()
    await plant.walk(Splitting, name="second", executions=3)
    plant.schedule()
    done = {f"piece {n}" for n in range(PIECES)}
    await plant.until(lambda: not plant.commands.waiting and done <= set(plant.side.calls), pass_ms=1000)
    completed = [event for event in plant.events() if isinstance(event, StepCompleted)]
    assert len(completed) == PIECES + 1
    assert begun_by(plant)["second"] == PIECES
    await plant.close()


async def test_a_decision_does_not_wait_behind_offered_steps() -> None:
    """However many offered steps wait or take long, a cancel is decided at once, of that run and of others."""
    plant = Plant(GatedSide)
    await plant.walk(Splitting, executions=2, step_slots=2, ctl_slots=1)
    plant.schedule()
    await plant.start()
    await plant.until(lambda: plant.side.calls["ask"] == 4 and len(plant.commands.waiting) >= PIECES - 4)
    await plant.give("cancel", {"reason": "enough"})
    await plant.until(lambda: plant.stands() == "cancelled")
    assert plant.side.calls["ask"] == 4
    await plant.close()


class Answered(ExternalEvent, frozen=True, kw_only=True):
    """Somebody said so."""


class Answering(Agent):
    """Works long on what somebody says."""

    name = "flaky"

    @step
    async def begin(self, go: Go) -> None:
        return None

    @step
    async def work(self, answered: Answered, side: Side) -> None:
        side.ask("work")
        await side.gate()


async def test_a_decision_does_not_wait_for_the_steps_of_another() -> None:
    """What people say is taken while the steps that earlier words led to still run; as many of them as there are slots."""
    plant = Plant(GatedSide)
    await plant.walk(Answering, slots=4, ctl_slots=1)
    keys = [RunKey("main", "flaky", f"r{n}") for n in range(4)]
    await plant.start(*keys)
    await plant.until(lambda: all(plant.stands(key) == "running" for key in keys))
    for key in keys:
        await plant.give("signal", {"event": "Answered", "body": {}}, key)
    await plant.until(lambda: plant.side.calls["ask"] == 4)
    await plant.give("cancel", {"reason": "enough"}, keys[0])
    await plant.until(lambda: plant.stands(keys[0]) == "cancelled")
    await plant.close()
