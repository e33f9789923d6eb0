"""Executions for which their committer had no slot are offered, and begun by way of the scheduler."""

from tests.unit.scheduler.flaky import Go, Side
from tests.unit.scheduler.plant import Plant

from waybook.agents import Agent, Event, step
from waybook.events.engine import StepBegan, StepOffered

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
