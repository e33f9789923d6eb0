"""How tasks are ended."""

import asyncio

from waybook.events.ending import end


async def test_a_task_that_swallows_a_cancellation_is_asked_again() -> None:
    """One cancellation may get lost in a wait that ends in the same moment; the end comes all the same."""
    asked = 0

    async def stubborn() -> None:
        nonlocal asked
        while asked < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                asked += 1

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await end([task], again_s=0.01)
    assert task.done() and asked == 3


async def test_whatever_tasks_raise_is_not_raised_by_their_end() -> None:
    """Ending is for clean-up: an error of a task that is thrown away reaches neither the caller nor the log."""

    async def fails() -> None:
        raise ValueError("mine")

    async def sleeps() -> None:
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(fails()), asyncio.create_task(sleeps())]
    await asyncio.sleep(0)
    await end(tasks)
    assert [t.done() for t in tasks] == [True, True]
    await end([])
