"""Work that goes on beside a block."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs `work` beside the block and waits for its end; the block is cancelled when it fails. Raises its error."""
    block = asyncio.current_task()
    assert block is not None

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            block.cancel()

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    try:
        yield
    except asyncio.CancelledError:
        if not task.done() or task.cancelled() or task.exception() is None:
            raise
        block.uncancel()
    finally:
        task.remove_done_callback(ended)
        await task
