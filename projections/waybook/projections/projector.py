"""The projector: reads each stream of STATE from its checkpoint on and keeps the read models up to date."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import asyncpg
import msgspec

from waybook.adapters.nats.connection import Connection as NatsConnection
from waybook.engine.hooks import BatchProjected, Hook, ProjectionRestarted, ignore
from waybook.engine.ports import PortError
from waybook.events.codec import Codec
from waybook.events.commit import Position
from waybook.events.subjects import state_stream
from waybook.projections.consumer import DurableConsumer
from waybook.projections.errors import PositionMoved, ProjectionStopped, ReaderLost
from waybook.projections.generation import ensure_live
from waybook.projections.log import LogReader
from waybook.projections.mark import Mark
from waybook.projections.read_models import FRONT, reader_lock
from waybook.projections.session import PASSING, Connection, connect_writer
from waybook.projections.tables import Tables

log = logging.getLogger(__name__)

Health = Literal["starting", "standby", "running", "waiting", "stopped"]


class ProjectorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the projector works. Times in seconds.

    `front` is the schema that users query. Batches that are not full begin at least `pace_s` apart, so that a busy
    stream makes few transactions; the first after a pause begins at once. `retry_s` is the longest pause between two tries
    while PostgreSQL or NATS is away; `standby_s` the pause between two looks whether the active reader is gone.
    """

    front: str = FRONT
    streams: tuple[str, ...] = (state_stream(),)
    pace_s: float = 0.3
    retry_s: float = 2.0
    standby_s: float = 0.5


class Projector:
    """Keeps the read models of an installation up to date; any number may run, one per stream is active.

    `run` returns after `stop`, or raises ProjectionStopped (LogGap, LogShorter, ...) when it cannot go on. It waits
    for ever for NATS and PostgreSQL.
    """

    def __init__(
        self,
        nats: NatsConnection,
        database_url: str,
        settings: ProjectorSettings | None = None,
        codec: Codec | None = None,
        hook: Hook = ignore,
    ) -> None:
        self.settings = settings or ProjectorSettings()
        self.streams = {
            name: StreamProjector(nats, database_url, name, self.settings, codec or Codec(), hook)
            for name in self.settings.streams
        }

    async def run(self) -> None:
        """Projects every stream until `stop`."""
        try:
            async with asyncio.TaskGroup() as group:
                for stream in self.streams.values():
                    group.create_task(stream.run(), name=f"projector {stream.name}")
        except ExceptionGroup as exc:
            raise _first(exc) from exc

    def stop(self) -> None:
        """Ends `run` after the batch under way."""
        for stream in self.streams.values():
            stream.stop()

    @property
    def health(self) -> Health:
        """That of the stream that is worst off."""
        order: Sequence[Health] = ("stopped", "waiting", "starting", "standby", "running")
        return min((s.health for s in self.streams.values()), key=order.index)

    async def wait_until(self, position: Position, timeout_s: float | None = None) -> None:
        """Returns when this projector has applied `position`.

        Raises TimeoutError, ProjectionStopped when `run` has ended before, KeyError for another stream.
        """
        async with asyncio.timeout(timeout_s):
            await self.streams[position.stream].wait_until(position.sequence)


class StreamProjector:
    """The projector of one stream."""

    def __init__(
        self,
        nats: NatsConnection,
        database_url: str,
        stream: str,
        settings: ProjectorSettings,
        codec: Codec,
        hook: Hook = ignore,
    ) -> None:
        self.name = stream
        self.health: Health = "starting"
        self.mark = Mark()
        self.placed = False  # whether `mark` is where the read models are: not before they were asked, nor on standby
        self.commits = 0  # applied by this process
        self.batches = 0
        self._settings = settings
        self._database_url = database_url
        self._nats = nats
        self._codec = codec
        self._hook = hook
        self._reader: LogReader | None = None
        self._stopping = asyncio.Event()
        self._moved = asyncio.Condition()

    def stop(self) -> None:
        """Ends `run` after the batch under way."""
        self._stopping.set()
        if self._reader is not None:
            self._reader.rouse()

    async def wait_until(self, sequence: int) -> None:
        """Returns when the stream has been applied up to `sequence`. Raises ProjectionStopped when `run` has ended."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.mark.sequence >= sequence or self.health == "stopped")
        if self.mark.sequence < sequence:
            raise ProjectionStopped(f"the projection of {self.name} has ended at {self.mark.sequence}")

    async def run(self) -> None:
        """Works until `stop`; every failure that passes by itself begins anew from the checkpoint."""
        self._reader = LogReader(self._nats, self.name, DurableConsumer(self.name), self._codec)
        try:
            await self._work_on(self._reader)
        except asyncpg.PostgresError as exc:
            raise ProjectionStopped(
                f"PostgreSQL refuses what {self.name} holds after {self.mark.sequence}: {exc}"
            ) from exc
        finally:
            self._reader.close()
            async with self._moved:
                self.health = "stopped"
                self._moved.notify_all()

    async def _work_on(self, reader: LogReader) -> None:
        failures = 0
        while not self._stopping.is_set():
            before = self.batches
            try:
                await self._work(reader)
            except (*PASSING, ReaderLost, PortError, PositionMoved) as exc:
                failures = 1 if self.batches > before else failures + 1
                self._note(exc)
                reader.close()
                await self._pause(failures)

    def _note(self, exc: Exception) -> None:
        self.health = "waiting"
        self._hook(ProjectionRestarted(self.name))
        extra = {"action": "projection_waits", "stream": self.name, "error": f"{type(exc).__name__}: {exc}"}
        log.warning("the projection of %s starts again from its checkpoint: %s", self.name, exc, extra=extra)

    async def _pause(self, failures: int) -> None:
        pause_s = min(self._settings.retry_s, 0.05 * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0)
        try:
            await asyncio.wait_for(self._stopping.wait(), pause_s)
        except TimeoutError:
            return

    async def _work(self, reader: LogReader) -> None:
        async with self._active_session() as connection:
            if connection is None:
                return
            generation = await ensure_live(connection, self._settings.front)
            if generation.outdated:
                extra = {"action": "projection_outdated", "generation": generation.number}
                log.warning("read models were filled by another version; rebuild them", extra=extra)
            tables = Tables(connection, generation, self.name)
            await self._set_mark(await tables.open())
            self.placed = True
            await reader.open(self.mark)
            self.health = "running"
            extra = {"action": "projection_runs", "stream": self.name, "sequence": self.mark.sequence}
            log.info("projection runs", extra=extra)
            await self._follow(reader, tables, connection)

    @asynccontextmanager
    async def _active_session(self) -> AsyncIterator[Connection | None]:
        """A connection that holds the reader's lock; None when stopped while another reader held it."""
        connection = await connect_writer(self._database_url)
        try:
            yield connection if await self._lock(connection) else None
        finally:
            connection.terminate()

    async def _lock(self, connection: Connection) -> bool:
        name = reader_lock(self._settings.front, self.name)
        while not self._stopping.is_set():
            if await connection.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", name):
                return True
            if self.health != "standby":
                self.health, self.placed = "standby", False
                log.info("another reader is active", extra={"action": "projection_standby", "stream": self.name})
            try:
                await asyncio.wait_for(self._stopping.wait(), self._settings.standby_s)
            except TimeoutError:
                continue
        return False

    async def _follow(self, reader: LogReader, tables: Tables, connection: Connection) -> None:
        now, due = asyncio.get_running_loop().time, 0.0
        while not self._stopping.is_set():
            batch = await reader.next(due)
            if batch is None:
                if connection.is_closed():
                    raise ConnectionResetError("the connection to PostgreSQL was lost")
                continue
            due = now() + self._settings.pace_s
            began = time.perf_counter()
            await tables.apply(batch, self.mark)
            self._hook(BatchProjected(self.name, batch.commits, time.perf_counter() - began))
            reader.ack(batch)
            self.batches += 1
            self.commits += batch.commits
            await self._set_mark(batch.last)

    async def _set_mark(self, mark: Mark) -> None:
        async with self._moved:
            self.mark = mark
            self._moved.notify_all()


def _first(group: ExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error
