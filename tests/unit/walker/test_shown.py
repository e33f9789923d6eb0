"""What a step shows: a text that is there at once keeps nobody waiting."""

import asyncio

from waybook.agents import Agent, Displayer, StartEvent, StopEvent, step
from waybook.testing.rehearsal import rehearsal

PIECES = 200


class Asked(StartEvent, frozen=True, kw_only=True):
    pass


class Written(StopEvent, frozen=True, kw_only=True):
    turns: int


class Hasty(Agent):
    """Shows a text that it has at once, and counts how often others get their turn meanwhile."""

    @step
    async def write(self, asked: Asked, displayer: Displayer) -> Written:
        turns = 0
        done = False

        def turn() -> None:
            nonlocal turns
            turns += 1
            if not done:
                asyncio.get_running_loop().call_soon(turn)

        turn()
        await displayer.stream("x" for _ in range(PIECES))
        done = True
        return Written(turns=turns)


async def test_others_get_their_turn_after_each_piece_of_a_text() -> None:
    """Or what is shown would pile up in memory until the step waits for something, and all other runs stand still."""
    async with rehearsal(Hasty) as stage:
        run = await stage.start(Asked())
        result = stage.result(run)
        assert isinstance(result, Written)
        assert result.turns >= PIECES
        assert len(stage.shown(run)) == PIECES
