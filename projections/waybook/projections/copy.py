"""A whole set of read models in the making, beside the live ones: for a rebuild, and to compare with."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import asyncpg

from waybook.adapters.nats.connection import Connection as NatsConnection
from waybook.engine.ports import PortError
from waybook.events.codec import Codec
from waybook.projections.consumer import PassingConsumer
from waybook.projections.errors import LogShorter, ReaderLost, RebuildRunning
from waybook.projections.generation import Generation, drop_generation, leftovers, new_generation
from waybook.projections.log import LogReader
from waybook.projections.mark import Mark
from waybook.projections.session import PASSING, Connection, connect_writer
from waybook.projections.tables import Tables

log = logging.getLogger(__name__)

ProgressCallback = Callable[[int, int], None]
"""Told (commits applied, commits to apply) after each batch."""


class Copy:
    """A generation that no view shows, with its own consumers and checkpoints."""

    def __init__(
        self,
        nats: NatsConnection,
        connection: Connection,
        generation: Generation,
        streams: tuple[str, ...],
        codec: Codec,
    ) -> None:
        self.generation = generation
        self.connection = connection
        self.commits = 0
        self.marks: dict[str, Mark] = {}
        self._nats = nats
        self._tables = {s: Tables(connection, generation, s) for s in streams}
        self._consumers = {s: PassingConsumer(s, f"projections_{generation.schema}") for s in streams}
        self._readers = {s: LogReader(nats, s, self._consumers[s], codec) for s in streams}

    async def open(self) -> None:
        """Makes the consumers and the checkpoints, all at the beginning."""
        for stream, tables in self._tables.items():
            self.marks[stream] = await tables.open()
            if await self._readers[stream].stream.state() is not None:
                await self._readers[stream].open(self.marks[stream])

    async def ends(self) -> dict[str, int]:
        """The last sequence of every stream, by its leader."""
        states = {s: await reader.stream.state() for s, reader in self._readers.items()}
        return {s: state.last_seq if state is not None else 0 for s, state in states.items()}

    async def catch_up(self, ends: dict[str, int], progress: ProgressCallback | None = None) -> None:
        """Applies every stream exactly up to its sequence in `ends`, or leaves it when it is there already.

        Streams that are not copied are passed over. Raises LogShorter, LogGap, ProjectionStopped when the log does
        not reach that far or cannot be folded.
        """
        ends = {stream: end for stream, end in ends.items() if stream in self.marks}
        total = self.commits + sum(max(0, end - self.marks[s].sequence) for s, end in ends.items())
        for stream, end in ends.items():
            while self.marks[stream].sequence < end:
                await self._step(stream, end)
                if progress is not None:
                    progress(min(self.commits, total), total)

    async def _step(self, stream: str, end: int) -> None:
        reader, mark = self._readers[stream], self.marks[stream]
        try:
            batch = await reader.next(last=end)
            if batch is None:
                if (await self.ends())[stream] < end:
                    raise LogShorter(f"stream {stream} ends before {end}; commits were lost")
                return
        except (ReaderLost, PortError) as exc:
            extra = {"action": "copy_reads_again", "stream": stream, "error": str(exc)}
            log.info("reading %s again from %s: %s", stream, mark.sequence + 1, exc, extra=extra)
            await self._again(reader, mark)
            return
        await self._tables[stream].apply(batch, mark)
        self.marks[stream] = batch.last
        self.commits += batch.commits

    async def _again(self, reader: LogReader, mark: Mark) -> None:
        await asyncio.sleep(0.1)
        with suppress(ReaderLost):
            await self._nats.until_connected()
            await reader.open(mark)

    async def close(self) -> None:
        """Removes the consumers; what cannot be removed goes by itself within a minute."""
        for reader in self._readers.values():
            reader.close()
        for consumer in self._consumers.values():
            with suppress(PortError):
                await consumer.remove(self._nats)


@asynccontextmanager
async def copying(
    nats: NatsConnection, database_url: str, front: str, streams: tuple[str, ...], codec: Codec | None = None
) -> AsyncIterator[Copy]:
    """An empty copy, under the lock that lets one rebuild or verification work at a time.

    What earlier ones left behind is removed first; this copy is removed last, unless it has become the live one.
    Raises RebuildRunning, errors of PostgreSQL, PortUnavailable.
    """
    connection = await connect_writer(database_url)
    try:
        name = f"waybook/{front}/rebuild"
        if not await connection.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", name):
            raise RebuildRunning
        generation = await new_generation(connection, front)
        await _clean(connection, front, keep=generation)
        copy = Copy(nats, connection, generation, streams, codec or Codec())
        try:
            await copy.open()
            yield copy
        finally:
            await copy.close()
            with suppress(*PASSING):
                await _clean(connection, front)
    finally:
        connection.terminate()


async def _clean(connection: Connection, front: str, keep: Generation | None = None) -> None:
    for generation in await leftovers(connection, front):
        if keep is not None and generation.number == keep.number:
            continue
        try:
            await drop_generation(connection, front, generation)
        except asyncpg.LockNotAvailableError:
            extra = {"action": "generation_kept", "generation": generation.number}
            log.info("old tables are still read; the next rebuild removes them", extra=extra)
