"""Generations: whole sets of read models with their checkpoints, of which one stands behind the views."""

from typing import NamedTuple

import asyncpg

from waybook.projections.migrate import lock, migrate, migrations
from waybook.projections.session import Connection
from waybook.projections.statements import identifier, placed, statements

HANDLERS_VERSION = 3
"""Version of the handlers and of `Progress`; raise it when the same log gives other rows."""

_GENERATIONS = statements("generations")
_VIEWS = statements("views")


class Generation(NamedTuple):
    """`schema` holds its tables; `handlers` is the version of the code that fills them."""

    number: int
    schema: str
    handlers: int

    @property
    def outdated(self) -> bool:
        """Whether other handlers filled it, so that a rebuild is due."""
        return self.handlers != HANDLERS_VERSION


def _generation(row: asyncpg.Record | None) -> Generation | None:
    return Generation(row["number"], row["schema"], row["handlers"]) if row is not None else None


async def live_generation(connection: Connection, front: str) -> Generation | None:
    """The generation behind the views; None when there is none, or no front at all."""
    if await connection.fetchval("SELECT to_regclass($1)", f"{identifier(front)}.generation") is None:
        return None
    return _generation(await connection.fetchrow(placed(_GENERATIONS["live_generation"], front=front)))


async def is_current(connection: Connection, front: str) -> bool:
    """Whether what the views show has this version's tables; not so where an older version made them, or nothing is there."""
    live = await live_generation(connection, front)
    if live is None:
        return False
    done = await connection.fetchval(f"SELECT max(number) FROM {identifier(live.schema)}.migration")
    return bool(done == migrations("tables")[-1][0])


async def ensure_live(connection: Connection, front: str) -> Generation:
    """The live generation, brought to this version's tables; the first one is made. Safe side by side."""
    await migrate(connection, front, "front")
    async with connection.transaction():
        await lock(connection, f"waybook/{front}/generations")
        live = await live_generation(connection, front)
        if live is None:
            live = await _add(connection, front, "live")
            await migrate(connection, live.schema, "tables")
            await show(connection, front, live)
        elif await migrate(connection, live.schema, "tables"):
            await show(connection, front, live)
    return live


async def new_generation(connection: Connection, front: str) -> Generation:
    """An empty generation that no view shows yet."""
    await migrate(connection, front, "front")
    async with connection.transaction():
        await lock(connection, f"waybook/{front}/generations")
        generation = await _add(connection, front, "building")
        await migrate(connection, generation.schema, "tables")
    return generation


async def _add(connection: Connection, front: str, state: str) -> Generation:
    row = await connection.fetchrow(placed(_GENERATIONS["add_generation"], front=front), front, state, HANDLERS_VERSION)
    generation = _generation(row)
    assert generation is not None
    return generation


async def show(connection: Connection, front: str, generation: Generation) -> None:
    """Puts the views in front of a generation. To be called within a transaction."""
    await connection.execute(placed(_VIEWS["drop_views"], front=front))
    views = (
        "create_messages_view",
        "create_actions_view",
        "create_approvals_view",
        "create_timers_view",
        "create_operations_view",
        "create_checkpoint_view",
    )
    for name in views:
        await connection.execute(placed(_VIEWS[name], front=front, tables=generation.schema))


async def swap(connection: Connection, front: str, generation: Generation) -> Generation | None:
    """Makes a built generation the live one; returns the one before. To be called within a transaction."""
    await lock(connection, f"waybook/{front}/generations")
    before = await live_generation(connection, front)
    await connection.execute(placed(_GENERATIONS["retire_live"], front=front))
    await connection.execute(placed(_GENERATIONS["set_live"], front=front), generation.number)
    await show(connection, front, generation)
    return before


async def drop_generation(connection: Connection, front: str, generation: Generation) -> None:
    """Removes a generation's tables. Raises LockNotAvailableError when a query still reads them after five seconds."""
    async with connection.transaction():
        await connection.execute("SET LOCAL lock_timeout = 5000")
        await connection.execute(f"DROP SCHEMA IF EXISTS {identifier(generation.schema)} CASCADE")
        await connection.execute(placed(_GENERATIONS["forget_generation"], front=front), generation.number)


async def leftovers(connection: Connection, front: str) -> list[Generation]:
    """Generations of rebuilds that did not come to their end, and such as were replaced."""
    rows: list[asyncpg.Record] = []
    for state in ("building", "old"):
        rows += await connection.fetch(placed(_GENERATIONS["generations_in"], front=front), state)
    return [Generation(r["number"], r["schema"], r["handlers"]) for r in rows]
