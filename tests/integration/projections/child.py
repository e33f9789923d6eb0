"""The projector as a process of its own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.integration.projections.installation import DEADLINE_S, Installation


class Child:
    """A running `python -m waybook.projections`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        await self.process.wait()

    async def terminate(self) -> int:
        """Asks it to end; the exit code."""
        self.process.terminate()
        return await self.ended()

    async def ended(self) -> int:
        """The exit code, when it has ended by itself."""
        return await asyncio.wait_for(self.process.wait(), DEADLINE_S)

    async def error_text(self) -> str:
        """What it wrote to standard error, to its end."""
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()


@asynccontextmanager
async def child(installation: Installation, *options: str) -> AsyncIterator[Child]:
    """A projector in a process of its own, killed at the end of the block if it still runs."""
    addresses = ("--nats-url", installation.nats_url, "--database-url", installation.database_url)
    command = (sys.executable, "-m", "waybook.projections", *addresses, *options)
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    found = Child(process)
    try:
        yield found
    finally:
        if process.returncode is None:
            await found.kill()
