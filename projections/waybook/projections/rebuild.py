"""Builds the read models anew from the log, beside the live ones, and swaps them in one transaction."""

import logging

import asyncpg
import msgspec

from waybook.adapters.nats.connection import Connection as NatsConnection
from waybook.events.codec import Codec
from waybook.projections.copy import Copy, ProgressCallback, copying
from waybook.projections.generation import Generation, live_generation, swap
from waybook.projections.projector import ProjectorSettings
from waybook.projections.session import Connection, connect_writer, port_errors
from waybook.projections.statements import identifier, statements

log = logging.getLogger(__name__)

NEAR_COMMITS = 2_000
SWAP_WAIT_S = 2.0
SWAP_TRIES = 10
_CHECKPOINT = statements("checkpoint")


class Rebuilt(msgspec.Struct, frozen=True):
    """What a rebuild did: commits applied, the generation that is live now, and the one it replaced."""

    commits: int
    generation: int
    replaced: int | None


async def rebuild(
    nats: NatsConnection,
    database_url: str,
    settings: ProjectorSettings | None = None,
    *,
    progress: ProgressCallback | None = None,
    codec: Codec | None = None,
) -> Rebuilt:
    """Rebuilds all read models from the log while the live ones go on, then swaps.

    Raises RebuildRunning, ProjectionStopped for a log that cannot be folded, DatabaseUnavailable (also when queries
    keep the views busy all the time), PortUnavailable; the live read models stay as they were then.
    """
    settings = settings or ProjectorSettings()
    with port_errors():
        async with copying(nats, database_url, settings.front, settings.streams, codec) as copy:
            return await _rebuild(copy, database_url, settings.front, progress)


async def _rebuild(copy: Copy, database_url: str, front: str, progress: ProgressCallback | None) -> Rebuilt:
    behind = NEAR_COMMITS + 1
    while behind > NEAR_COMMITS:
        ends = await copy.ends()
        behind = sum(end - copy.marks[s].sequence for s, end in ends.items())
        await copy.catch_up(ends, progress)
    replaced = await _swap(copy, database_url, front)
    extra = {"action": "rebuilt", "generation": copy.generation.number, "commits": copy.commits}
    log.info("read models rebuilt", extra=extra)
    return Rebuilt(copy.commits, copy.generation.number, replaced.number if replaced is not None else None)


async def _swap(copy: Copy, database_url: str, front: str) -> Generation | None:
    """Swaps as soon as no long query is in the way of the views."""
    session = await connect_writer(database_url)
    try:
        for _ in range(SWAP_TRIES - 1):
            try:
                return await _swap_once(copy, session, front)
            except asyncpg.LockNotAvailableError:
                log.info("queries hold the views; trying to swap again", extra={"action": "swap_waits"})
        return await _swap_once(copy, session, front)
    finally:
        session.terminate()


async def _swap_once(copy: Copy, session: Connection, front: str) -> Generation | None:
    """Holds the live reader back, catches up with what it has, and puts the copy behind the views.

    The copy may be ahead of the live tables, never behind: who saw a commit in the views sees it ever after.
    """
    async with session.transaction():
        await session.execute(f"SET LOCAL lock_timeout = {int(SWAP_WAIT_S * 1000)}")
        live = await live_generation(session, front)
        if live is not None:
            await session.execute(f"SET LOCAL search_path TO {identifier(live.schema)}")
            rows = await session.fetch(_CHECKPOINT["lock_checkpoints"])
            ends = await copy.ends()  # below the live tables where commits were lost
            await copy.catch_up({r["stream"]: min(r["sequence"], ends.get(r["stream"], 0)) for r in rows})
            await session.execute(_CHECKPOINT["retire_checkpoints"])
        return await swap(session, front, copy.generation)
