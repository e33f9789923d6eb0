"""How tasks are ended."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 5.0


async def end(tasks: "Iterable[asyncio.Future[Any]]", *, again_s: float = AGAIN_S) -> None:
    """Cancels tasks and returns when each of them has ended, however it ended.

    A wait that comes to its end in the very moment of a cancellation can swallow it (`asyncio.wait_for` before Python
    3.12 returns its result), and the task goes on as if nobody had asked. So whoever has not ended after `again_s`
    seconds is asked again.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        done, pending = await asyncio.wait(pending, timeout=again_s)
        for task in done:
            if not task.cancelled():
                task.exception()  # looked at: nobody else will, and asyncio would log it
