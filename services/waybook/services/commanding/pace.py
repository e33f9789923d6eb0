"""Gives many commands at a bounded rate, some side by side."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
G = TypeVar("G")

SIDE_BY_SIDE = 16


async def at_pace(
    what: Sequence[T], give: Callable[[T], Awaitable[G]], *, per_s: float, told: Callable[[int], None]
) -> list[G]:
    """What `give` answers to each, in order; it is called at most `per_s` times a second. `told` hears how many are done.

    Raises what `give` raises; the others are not waited for then.
    """
    slots = asyncio.Semaphore(SIDE_BY_SIDE)
    done = 0

    async def one(item: T) -> G:
        nonlocal done
        async with slots:
            answer = await give(item)
        done += 1
        told(done)
        return answer

    tasks: list[asyncio.Task[G]] = []
    try:
        for number, item in enumerate(what):
            if number:
                await asyncio.sleep(1 / per_s)
            tasks.append(asyncio.create_task(one(item)))
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
