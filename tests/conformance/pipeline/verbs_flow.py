"""Actions that hold actions: parallel, repeat."""

import asyncio
import itertools
import math

from tests.conformance.pipeline.verbs import Action, perform, verb
from tests.conformance.pipeline.world import World


@verb("parallel", "actions")
async def parallel(world: World, action: Action) -> None:
    """Its actions at the same time: every order of them, and one true race."""
    actions = action["actions"]
    way = world.choices.choose("parallel", math.factorial(len(actions)) + 1)
    orders = list(itertools.permutations(actions))
    if way < len(orders):
        for one in orders[way]:
            await perform(world, one)
    else:
        await asyncio.gather(*(perform(world, one) for one in actions))


@verb("repeat", "actions", "times")
async def repeat(world: World, action: Action) -> None:
    """Its actions, so many times."""
    for _ in range(int(action["times"])):
        for one in action["actions"]:
            await perform(world, one)
