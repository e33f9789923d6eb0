"""Questions to the read models. Whoever decides something asks STATE instead (DESIGN 2, invariant 13)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec

from waybook.events.commit import Position
from waybook.projections.errors import NoReadModels, OutdatedReadModels
from waybook.projections.generation import is_current
from waybook.projections.session import Connection, connect_reader, port_errors
from waybook.projections.statements import placed, statements
from waybook.projections.storable import text

_QUERIES = statements("queries")
FRONT = "waybook"


class ReadModels:
    """The read models of an installation, over one connection. Rows come as dicts with the columns' names.

    Every method raises NoReadModels when there are none yet, OutdatedReadModels, DatabaseUnavailable, and what asyncpg raises.
    """

    def __init__(self, connection: Connection, front: str = FRONT) -> None:
        self._connection = connection
        self._front = front

    @classmethod
    @asynccontextmanager
    async def open(cls, database_url: str, front: str = FRONT) -> AsyncIterator["ReadModels"]:
        """Connects for the duration of the block. Raises DatabaseUnavailable."""
        with port_errors():
            connection = await connect_reader(database_url)
        try:
            await connection.set_type_codec(
                "jsonb", schema="pg_catalog", encoder=_encode_json, decoder=msgspec.json.decode
            )
            yield cls(connection, front)
        finally:
            await connection.close()

    async def messages(
        self,
        *,
        status: str | None = None,
        hold: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        thread: str | None = None,
        runs: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Messages, newest first; `limit` None: all of them."""
        return await self._rows("messages", status, hold, agent, tenant, thread, runs, limit)

    async def settled(self, runs: Sequence[str], *, tenant: str | None = None) -> int:
        """How many of these runs have ended or are held."""
        return int((await self._rows("settled", runs, tenant))[0]["settled"])

    async def open_runs(self, *, tenant: str | None = None, but: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Run, agent, tenant, definition, status and hold of the runs that have not ended, oldest first.

        Those whose definition is among `but` are left out.
        """
        return await self._rows("open_runs", tenant, list(but))

    async def failed(
        self,
        *,
        agent: str,
        tenant: str | None = None,
        step: str | None = None,
        error: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Failed runs, those that failed first before the others; `step` and `error` (a part of its text) narrow them."""
        return await self._rows("failed", agent, tenant, step, text(error) if error is not None else None, limit)

    async def timers(self) -> list[dict[str, Any]]:
        """All timers that runs wait for, soonest first."""
        return await self._rows("timers")

    async def standing_still(
        self, since_ms: int, *, parked: Sequence[str] = (), agents: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Open runs without a commit since then (ms UTC) and without a named blocker.

        `parked`: the states, as `agent:state`, in which runs of `agents` wait for somebody.
        """
        return await self._rows("standing_still", since_ms, list(parked), list(agents))

    async def unsent(self, tenant: str) -> list[dict[str, Any]]:
        """Open runs of a tenant with a send that may not have begun."""
        return await self._rows("unsent", tenant)

    async def beginning_with(
        self, characters: str, *, agent: str | None = None, tenant: str | None = None
    ) -> list[str]:
        """Ids of runs that begin with these characters, at most 20."""
        return [row["run"] for row in await self._rows("beginning_with", characters, agent, tenant)]

    async def message(self, run: str, *, agent: str | None = None, tenant: str | None = None) -> list[dict[str, Any]]:
        """All columns of the run's row; none, or one for each agent and tenant that has such a run."""
        return await self._rows("message", run, agent, tenant)

    async def counts(self, *, agent: str | None = None, tenant: str | None = None) -> dict[str, int]:
        """How many messages there are in each state."""
        return {row["status"]: row["messages"] for row in await self._rows("message_counts", agent, tenant)}

    async def actions(self, run: str, *, agent: str | None = None, tenant: str | None = None) -> list[dict[str, Any]]:
        """The attempts of a run, in the order in which they came up."""
        return await self._rows("actions", run, agent, tenant)

    async def approvals(
        self,
        *,
        now: int,
        status: str | None = "pending",
        tenant: str | None = None,
        agent: str | None = None,
        run: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Approvals, the longest waiting first. `status` None: all. Who could decide until before `now` (ms, UTC): expired."""
        return await self._rows("approvals", tenant, agent, run, status, now, limit)

    async def operations(
        self,
        *,
        run: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        open_only: bool = False,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """External side effects, the latest first. `open_only`: those that nobody knows the outcome of, or two disagree on."""
        return await self._rows("operations", tenant, agent, run, open_only, limit)

    async def earlier_in_thread(
        self, *, tenant: str, agent: str, sender: str, thread: str, run: str, limit: int
    ) -> list[dict[str, Any]]:
        """The newest other messages of `thread` from the address `sender`, with text and the reply that was sent."""
        arguments = (tenant, agent, text(sender).lower(), text(thread), text(run), limit)
        return await self._rows("earlier_in_thread", *arguments)

    async def earlier_of_sender(
        self, *, tenant: str, agent: str, sender: str, thread: str | None, words: str, run: str, limit: int
    ) -> list[dict[str, Any]]:
        """Messages of other threads from the address `sender`; those that share the most with `words` come first."""
        other_than = text(thread) if thread is not None else None
        arguments = (tenant, agent, text(sender).lower(), other_than, text(words), text(run), limit)
        return await self._rows("earlier_of_sender", *arguments)

    async def position(self, stream: str) -> int:
        """How far a stream has been applied, 0 when it never was."""
        rows = await self._rows("position", stream)
        return int(rows[0]["sequence"]) if rows else 0

    async def wait_until(self, position: Position, timeout_s: float, *, poll_s: float = 0.02) -> None:
        """Returns when some projector has applied `position`. Raises TimeoutError after `timeout_s`."""
        async with asyncio.timeout(timeout_s):
            while True:
                if await self._reached(position.stream) >= position.sequence:
                    return
                await asyncio.sleep(poll_s)

    async def _reached(self, stream: str) -> int:
        try:
            return await self.position(stream)
        except NoReadModels:
            return 0  # the projector is just making them

    async def is_current(self) -> bool:
        """Whether they have this version's tables. An active projector of this version sees to that."""
        with port_errors():
            return await is_current(self._connection, self._front)

    async def has_reader(self, stream: str) -> bool:
        """Whether a projector is active on a stream just now."""
        name = reader_lock(self._front, stream)
        return bool((await self._rows("active_reader", name))[0]["exists"])

    async def _rows(self, query: str, *arguments: object) -> list[dict[str, Any]]:
        try:
            with port_errors():
                rows = await self._connection.fetch(placed(_QUERIES[query], front=self._front), *arguments)
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as exc:
            raise NoReadModels from exc
        except asyncpg.UndefinedColumnError as exc:
            raise OutdatedReadModels from exc
        return [dict(row) for row in rows]


def reader_lock(front: str, stream: str) -> str:
    """The name of the advisory lock that a stream's active reader holds."""
    return f"waybook/{front}/{stream}/reader"


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()
