"""Starts the projector in a process of its own, so that it has a core of its own, and stops it again."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from waybook.events.ending import end

log = logging.getLogger(__name__)

NICENESS = 10
"""The projector lets the walker and the servers go first: read models may lag for a moment, commits are waited for."""

STOP_S = 10.0
RESTART_S = 1.0
LONGEST_RESTART_S = 60.0
"""One that cannot go on (a gap, a commit of a newer program) ends at once: each start costs half a second of CPU."""


class ProjectorChild:
    """The child process; it is started again when it dies unasked. Read models lag meanwhile, nothing is lost.

    It answers `/metrics` on the socket `metrics`, which stays ours, so that the address outlives a restart.
    """

    def __init__(
        self, nats_url: str, database_url: str, inbox_prefix: str = "_INBOX", metrics: socket.socket | None = None
    ) -> None:
        self._environment = {
            **os.environ,
            "WAYBOOK_NATS_URL": nats_url,
            "WAYBOOK_DATABASE_URL": database_url,
            "WAYBOOK_NATS_INBOX_PREFIX": inbox_prefix,
        }
        self._environment.pop("WAYBOOK_METRICS_PORT", None)  # the parent's
        self._metrics = metrics
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    @property
    def pid(self) -> int | None:
        """That of the process which was started last."""
        return self._process.pid if self._process is not None else None

    @property
    def exit_code(self) -> int | None:
        """That of the process, negative for a signal that ended it; None while it runs."""
        return self._process.returncode if self._process is not None else None

    async def start(self) -> None:
        """Starts the process; its standard error is ours."""
        kept = () if self._metrics is None else (self._metrics.fileno(),)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "waybook.projections",
            *("--parent", str(os.getpid())),  # a killed parent stops nobody
            *(word for fd in kept for word in ("--metrics-fd", str(fd))),
            pass_fds=kept,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        with suppress(ProcessLookupError):  # it died already; `watch` starts it again
            os.setpriority(os.PRIO_PROCESS, self._process.pid, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)

    async def watch(self) -> None:
        """Starts the process again whenever it ends, until `stop`."""
        now, pause_s = asyncio.get_running_loop().time, RESTART_S
        while not self._stopping:
            assert self._process is not None
            began = now()
            code = await self._process.wait()
            if self._stopping:
                return
            log.error("the projector ended", extra={"action": "projector_ended", "code": code})
            pause_s = RESTART_S if now() - began > LONGEST_RESTART_S else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_RESTART_S, pause_s * 2)
            await self.start()

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL after 10 s."""
        self._stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def projector_child(
    nats_url: str, database_url: str, *, inbox_prefix: str = "_INBOX", metrics: socket.socket | None = None
) -> AsyncIterator[ProjectorChild]:
    """The projector for the time of the block."""
    child = ProjectorChild(nats_url, database_url, inbox_prefix, metrics)
    await child.start()
    watcher = asyncio.create_task(child.watch())
    try:
        yield child
    finally:
        await child.stop()
        await end([watcher])
