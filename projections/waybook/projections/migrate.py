"""Brings a schema to this version's shape: numbered .sql files, each applied once, in order, under a lock."""

import logging
import re
from importlib import resources
from typing import Literal

from waybook.projections.errors import ProjectionStopped
from waybook.projections.session import Connection
from waybook.projections.statements import identifier

log = logging.getLogger(__name__)

Series = Literal["front", "tables"]

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


def migrations(series: Series) -> list[tuple[int, str, str]]:
    """The migrations of a series: number, name, SQL; numbered from 1 without holes."""
    found = []
    for file in resources.files("waybook.projections.migrations").joinpath(series).iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None:
            found.append((int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return sorted(found)


async def lock(connection: Connection, name: str) -> None:
    """Takes the advisory lock `name` until the transaction ends, waiting for it."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)


async def migrate(connection: Connection, schema: str, series: Series) -> int:
    """Creates `schema` if it is missing and applies what it lacks; returns how many migrations that were.

    Raises ProjectionStopped when a newer version of Waybook has been here. Ends with `search_path` as it was.
    """
    known = migrations(series)
    async with connection.transaction():
        await lock(connection, f"waybook/{schema}/migrate")
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
        await connection.execute(f"SET LOCAL search_path TO {identifier(schema)}")
        await connection.execute(_TABLE)
        done: int = await connection.fetchval("SELECT coalesce(max(number), 0) FROM migration")
        if known and done > known[-1][0]:
            raise ProjectionStopped(
                f"schema {schema} was migrated to {done} by a newer version of Waybook; this one knows {known[-1][0]}"
            )
        due = [m for m in known if m[0] > done]
        for number, name, sql in due:
            await connection.execute(sql)
            await connection.execute("INSERT INTO migration (number, name) VALUES ($1, $2)", number, name)
            extra = {"action": "migrated", "schema": schema, "number": number, "migration": name}
            log.info("schema migrated", extra=extra)
    return len(due)


_TABLE = """
CREATE TABLE IF NOT EXISTS migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
