"""Compares the live read models, row by row, with what the log says."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import asyncpg
import msgspec

from waybook.adapters.nats.connection import Connection as NatsConnection
from waybook.events.codec import Codec
from waybook.projections import agent_actions, approvals, inbound_messages, operations, timers
from waybook.projections.copy import Copy, ProgressCallback, copying
from waybook.projections.errors import NoReadModels
from waybook.projections.generation import live_generation
from waybook.projections.projector import ProjectorSettings
from waybook.projections.session import Connection, connect_writer, port_errors
from waybook.projections.statements import identifier, statements

SHOWN = 100
_VERIFY = statements("verify")
_TABLES = (
    (inbound_messages.NAME, "messages_by_key", inbound_messages.KEY),
    (agent_actions.NAME, "actions_by_key", agent_actions.KEY),
    (approvals.NAME, "approvals_by_key", approvals.KEY),
    (timers.NAME, "timers_by_key", timers.KEY),
    (operations.NAME, "operations_by_key", operations.KEY),
)


class Column(msgspec.Struct, frozen=True):
    """A column's value in the read model, and what the log says it should be."""

    stored: Any
    expected: Any


class Difference(msgspec.Struct, frozen=True):
    """A row that is missing, that the log knows nothing of, or that has other values."""

    table: str
    key: dict[str, str]
    kind: Literal["missing", "unexpected", "different"]
    columns: dict[str, Column] = {}


class Verified(msgspec.Struct, frozen=True):
    """The outcome: rows and commits compared, the number of rows that differ, and the first SHOWN of them."""

    commits: int
    rows: int
    differing: int
    differences: tuple[Difference, ...]


async def verify(
    nats: NatsConnection,
    database_url: str,
    settings: ProjectorSettings | None = None,
    *,
    progress: ProgressCallback | None = None,
    codec: Codec | None = None,
) -> Verified:
    """Folds the log into a copy and compares the live tables with it, at the position of the live tables.

    The live reader goes on meanwhile. Raises NoReadModels, RebuildRunning, LogShorter when the live tables are ahead
    of the log, ProjectionStopped for a log that cannot be folded, PortUnavailable, DatabaseUnavailable.
    """
    settings = settings or ProjectorSettings()
    with port_errors():
        async with copying(nats, database_url, settings.front, settings.streams, codec) as copy:
            session = await connect_writer(database_url)
            try:
                return await _verify(copy, session, settings.front, progress)
            finally:
                session.terminate()


async def _verify(copy: Copy, session: Connection, front: str, progress: ProgressCallback | None) -> Verified:
    live = await live_generation(session, front)
    if live is None:
        raise NoReadModels
    await session.execute(f"SET search_path TO {identifier(live.schema)}")
    await copy.catch_up(await _checkpoints(session), progress)
    async with session.transaction(isolation="repeatable_read", readonly=True):
        await copy.catch_up(await _checkpoints(session), progress)
        return await _compare(session, copy)


async def _checkpoints(session: Connection) -> dict[str, int]:
    return {r["stream"]: r["sequence"] for r in await session.fetch(_VERIFY["checkpoints"])}


async def _compare(session: Connection, copy: Copy) -> Verified:
    rows = differing = 0
    found: list[Difference] = []
    async with copy.connection.transaction(readonly=True):
        for table, statement, key in _TABLES:
            stored = _Rows(session, _VERIFY[statement], key)
            expected = _Rows(copy.connection, _VERIFY[statement], key)
            async for difference in _merged(table, key, stored, expected):
                differing += 1
                if len(found) < SHOWN:
                    found.append(difference)
            rows += expected.count
    return Verified(copy.commits, rows, differing, tuple(found))


class _Rows:
    """A table's rows in the order of their keys, one after the other."""

    def __init__(self, connection: Connection, statement: str, key: tuple[str, ...]) -> None:
        self._cursor = aiter(connection.cursor(statement, prefetch=500))
        self._key = key
        self.count = 0

    async def next(self) -> tuple[tuple[str, ...], asyncpg.Record] | None:
        row: asyncpg.Record | None = await anext(self._cursor, None)
        if row is None:
            return None
        self.count += 1
        return tuple(row[name] for name in self._key), row


async def _merged(table: str, names: tuple[str, ...], stored: _Rows, expected: _Rows) -> AsyncIterator[Difference]:
    have, want = await stored.next(), await expected.next()
    while have is not None or want is not None:
        if want is None or (have is not None and have[0] < want[0]):
            assert have is not None
            yield Difference(table, dict(zip(names, have[0], strict=True)), "unexpected")
            have = await stored.next()
        elif have is None or want[0] < have[0]:
            yield Difference(table, dict(zip(names, want[0], strict=True)), "missing")
            want = await expected.next()
        else:
            if have[1] != want[1]:
                yield Difference(table, dict(zip(names, want[0], strict=True)), "different", _columns(have[1], want[1]))
            have, want = await stored.next(), await expected.next()


def _columns(have: asyncpg.Record, want: asyncpg.Record) -> dict[str, Column]:
    changed = [name for name, value in want.items() if have[name] != value]
    return {name: Column(_shown(have[name]), _shown(want[name])) for name in changed}


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
