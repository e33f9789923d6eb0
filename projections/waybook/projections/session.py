"""Connections to PostgreSQL, and which of its errors pass by themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from waybook.projections.errors import DatabaseUnavailable

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection  # not generic at run time

PASSING = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a COPY was cut off with its connection, which says so in the next statement only
    asyncpg.PostgresConnectionError,  # 08
    asyncpg.OperatorInterventionError,  # 57: shutting down, starting up
    asyncpg.InsufficientResourcesError,  # 53: disk full, too many connections
    asyncpg.TransactionRollbackError,  # 40: deadlock, serialization
    asyncpg.ReadOnlySQLTransactionError,  # 25006: a standby not promoted yet
    asyncpg.LockNotAvailableError,
    asyncpg.PostgresSystemError,  # 58: its disk does not answer
)
"""Errors after which the same work may succeed: PostgreSQL is away, starting, full or busy."""

_SETTINGS = {
    # A checkpoint that a crash of the server takes back is read again from the log.
    "synchronous_commit": "off",
    # Statements join a few hundred keys with a table of any size; statistics must not talk the planner out of
    # the primary key.
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "jit": "off",
    "timezone": "UTC",
}


async def connect_writer(database_url: str, *, timeout_s: float = 10.0) -> Connection:
    """A connection for a reader of the log. Raises one of PASSING, or asyncpg.PostgresError."""
    return await _connect(database_url, "waybook projector", _SETTINGS, timeout_s)


async def connect_reader(database_url: str, *, timeout_s: float = 10.0) -> Connection:
    """A connection for queries. Raises one of PASSING, or asyncpg.PostgresError."""
    return await _connect(database_url, "waybook", {"timezone": "UTC"}, timeout_s)


async def _connect(url: str, name: str, settings: dict[str, str], timeout_s: float) -> Connection:
    return await asyncpg.connect(url, timeout=timeout_s, server_settings={"application_name": name, **settings})


@contextmanager
def port_errors() -> Iterator[None]:
    """Within the block, errors that pass by themselves become DatabaseUnavailable."""
    try:
        yield
    except PASSING as exc:
        raise DatabaseUnavailable(f"PostgreSQL: {exc or type(exc).__name__}") from exc
