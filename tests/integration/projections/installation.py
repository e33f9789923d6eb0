"""A stream of STATE and an empty database, and what the tests of the projections do with them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec
import nats
from nats.aio.client import Client
from tests.unit.projections import histories as h

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.settings import NatsSettings
from waybook.events.codec import Codec, commit_headers, commit_id
from waybook.events.commit import Commit, Position
from waybook.events.subjects import RunKey, state_stream, state_subject
from waybook.projections.consumer import DURABLE
from waybook.projections.errors import NoReadModels
from waybook.projections.projector import Projector, ProjectorSettings
from waybook.projections.read_models import ReadModels
from waybook.projections.verify import Verified, verify

STREAM = state_stream()
DEADLINE_S = 30.0


class Installation(msgspec.Struct):
    """Addresses, a plain client that plays walker and administrator, and the connection of the projections."""

    nats_url: str
    database_url: str
    client: Client
    connection: Connection
    settings: ProjectorSettings = ProjectorSettings(pace_s=0.02, standby_s=0.05, retry_s=0.2)

    async def make_stream(self) -> None:
        """A stream that lets tests delete what the real one never would."""
        await self.client.jetstream().add_stream(name=STREAM, subjects=["state.g1.00.>"], allow_direct=True)

    async def append(self, commits: Iterable[tuple[RunKey, Commit]]) -> int:
        """Stores commits; returns the last sequence."""
        codec, stream = Codec(), self.client.jetstream()
        sequence = (await stream.stream_info(STREAM)).state.last_seq
        for key, commit in commits:
            subject, payload = state_subject(key), codec.encode(commit)
            headers = commit_headers(commit, commit_id=commit_id(subject, sequence, payload))
            await self.client.publish(subject, payload, headers=headers)
            sequence += 1
        await self.client.flush()

        async def stored() -> bool:
            return (await stream.stream_info(STREAM)).state.last_seq >= sequence

        await until(stored)
        return sequence

    async def append_walks(self, runs: int, first: int = 0, size: int = 20) -> int:
        """Stores the six commits of each of `runs` messages, side by side."""
        walks = h.interleaved(h.walk(size) for _ in range(runs))
        return await self.append((h.key(first + number), commit) for number, commit in walks)

    @asynccontextmanager
    async def projecting(self) -> AsyncIterator[Projector]:
        """A projector at work in this process; its error, if it ends with one, comes out of the block."""
        projector = Projector(self.connection, self.database_url, self.settings)
        task = asyncio.create_task(projector.run())
        try:
            yield projector
        finally:
            projector.stop()
            await asyncio.wait_for(task, DEADLINE_S)

    async def project_until(self, sequence: int) -> None:
        """Lets a projector work until `sequence` is applied."""
        projector = Projector(self.connection, self.database_url, self.settings)
        task = asyncio.create_task(projector.run())
        reached = asyncio.create_task(projector.wait_until(Position(STREAM, sequence), DEADLINE_S))
        await asyncio.wait((task, reached), return_when=asyncio.FIRST_COMPLETED)
        projector.stop()
        reached.cancel()
        await asyncio.wait_for(task, DEADLINE_S)

    async def position(self) -> int:
        """How far the read models are."""
        async with ReadModels.open(self.database_url) as models:
            return await models.position(STREAM)

    async def position_or_zero(self) -> int:
        """As `position`; 0 also while the read models are being made."""
        try:
            return await self.position()
        except NoReadModels:
            return 0

    async def applied(self, sequence: int) -> None:
        """Returns when any projector has applied `sequence`."""
        async with ReadModels.open(self.database_url) as models:
            await models.wait_until(Position(STREAM, sequence), DEADLINE_S)

    async def verified(self) -> Verified:
        """The comparison with the log."""
        return await verify(self.connection, self.database_url, self.settings)

    async def execute(self, statement: str) -> str:
        """SQL on the live generation's tables, by hand."""
        connection = await asyncpg.connect(self.database_url)
        try:
            schema = await connection.fetchval("SELECT schema FROM waybook.generation WHERE state = 'live'")
            await connection.execute(f"SET search_path TO {schema}")
            return str(await connection.execute(statement))
        finally:
            await connection.close()

    async def rows(self, query: str) -> list[Any]:
        """Rows of the views."""
        connection = await asyncpg.connect(self.database_url)
        try:
            return list(await connection.fetch(query))
        finally:
            await connection.close()


@asynccontextmanager
async def installed(nats_url: str, database_url: str) -> AsyncIterator[Installation]:
    """Connects to the servers; the stream is there and empty."""
    client = await nats.connect(nats_url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=_ignore)
    try:
        async with await Connection.open(NatsSettings(servers=(nats_url,))) as connection:
            installation = Installation(nats_url, database_url, client, connection)
            await installation.make_stream()
            yield installation
    finally:
        await client.close()


async def _ignore(exc: Exception) -> None:
    """Tests stop servers on purpose."""


async def until(condition: Callable[[], Awaitable[bool]], timeout_s: float = DEADLINE_S) -> None:
    """Returns when `condition` holds."""
    async with asyncio.timeout(timeout_s):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


__all__ = ["DEADLINE_S", "DURABLE", "STREAM", "Installation", "installed", "until"]
