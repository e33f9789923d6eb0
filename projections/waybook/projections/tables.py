"""A generation's tables on one connection: the checkpoint and the rows, always moved together."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import asyncpg

from waybook.events.subjects import RunKey
from waybook.projections import agent_actions, approvals, inbound_messages, operations, timers
from waybook.projections.batch import fold_batch, runs_of
from waybook.projections.changes import RunChange
from waybook.projections.cleaning import clean
from waybook.projections.errors import PositionMoved
from waybook.projections.generation import Generation
from waybook.projections.log import Batch
from waybook.projections.mark import Mark
from waybook.projections.progress import Entry, Progress, from_bytes
from waybook.projections.session import Connection
from waybook.projections.statements import identifier, statements

log = logging.getLogger(__name__)

_CHECKPOINT = statements("checkpoint")
_MESSAGES = statements(inbound_messages.NAME)
_ACTIONS = statements(agent_actions.NAME)
_APPROVALS = statements(approvals.NAME)
_TIMERS = statements(timers.NAME)
_OPERATIONS = statements(operations.NAME)

KEPT_RUNS = 5_000

Row: TypeAlias = tuple[Any, ...]


class _New(NamedTuple):
    """How new rows of a table come in: by COPY into its columns, or by a statement."""

    table: str
    columns: Sequence[str]
    statement: str


_Fill: TypeAlias = Callable[[_New, list[Row]], Awaitable[None]]

_NEW_MESSAGES = _New(inbound_messages.NAME, inbound_messages.COLUMNS, _MESSAGES["insert_messages"])
_NEW_ACTIONS = _New(agent_actions.NAME, agent_actions.COLUMNS, _ACTIONS["insert_actions"])
_NEW_APPROVALS = _New(approvals.NAME, approvals.COLUMNS, _APPROVALS["insert_approvals"])


class Tables:
    """The read models of one generation, for one stream. Owns `connection`'s search_path.

    The progress of up to KEPT_RUNS open runs stays in memory, so that a run's next commit finds it without a read;
    after an error it is dropped, because SQL alone knows what was stored.
    """

    def __init__(self, connection: Connection, generation: Generation, stream: str) -> None:
        self.generation = generation
        self.stream = stream
        self._connection = connection
        self._kept: dict[RunKey, Progress] = {}

    async def open(self) -> Mark:
        """Where the stream has been applied up to."""
        connection = self._connection
        await connection.execute(f"SET search_path TO {identifier(self.generation.schema)}")
        await connection.execute(_CHECKPOINT["create_checkpoint"], self.stream)
        row = await connection.fetchrow(_CHECKPOINT["read_checkpoint"], self.stream)
        assert row is not None
        return Mark(row["sequence"], row["commit_id"], row["stored_at"])

    async def apply(self, batch: Batch, before: Mark) -> None:
        """Stores the rows of `batch` and the checkpoint behind it, or nothing at all.

        Raises PositionMoved when the checkpoint is not at `before`, ProjectionStopped when the history has a hole,
        and what PostgreSQL raises.
        """
        try:
            await self._apply(batch, before)
        except (asyncpg.UniqueViolationError, asyncpg.DataError) as exc:
            extra = {
                "action": "batch_applied_with_care",
                "stream": self.stream,
                "error": f"{type(exc).__name__}: {exc}",
            }
            log.info("PostgreSQL refuses a batch as it is", extra=extra)
            await self._apply(batch, before, careful=True)

    async def _apply(self, batch: Batch, before: Mark, *, careful: bool = False) -> None:
        """`careful` takes longer: JSON is cleaned first, and rows that are in the way give way to the log."""
        try:
            async with self._connection.transaction():
                await self._move(before, batch.last)
                known = await self._known(batch.entries)
                changes = fold_batch(batch.entries, known)
                if careful:
                    clean(changes)
                await self._write(changes, self._insert if careful else self._copy)
        except BaseException:
            self._kept.clear()
            raise
        self._keep(changes)

    async def _move(self, before: Mark, after: Mark) -> None:
        statement = _CHECKPOINT["move_checkpoint"]
        values = (self.stream, before.sequence, after.sequence, after.commit_id, after.at)
        try:
            answer = await self._connection.execute(statement, *values)
        except asyncpg.UndefinedTableError as exc:
            raise PositionMoved(f"a rebuild has replaced {self.generation.schema}") from exc
        if answer != "UPDATE 1":
            raise PositionMoved(f"the checkpoint of {self.stream} is not at {before.sequence} any more")

    async def _known(self, entries: Sequence[Entry]) -> dict[RunKey, Progress]:
        keys = runs_of(entries)
        known = {key: kept for key in keys if (kept := self._kept.pop(key, None)) is not None}
        missing = [key for key in keys if key not in known]
        if missing:
            columns = [[k.tenant for k in missing], [k.agent for k in missing], [k.run for k in missing]]
            for row in await self._connection.fetch(_MESSAGES["read_progress"], *columns):
                known[missing[row["ordinal"] - 1]] = from_bytes(row["progress"])
        return known

    async def _write(self, changes: list[RunChange], fill: _Fill) -> None:
        await fill(_NEW_MESSAGES, inbound_messages.inserts(changes))
        await self._run(_MESSAGES["patch_messages"], inbound_messages.patches(changes))
        await self._run(_ACTIONS["drop_actions"], agent_actions.drops(changes))
        await fill(_NEW_ACTIONS, agent_actions.inserts(changes))
        await self._run(_ACTIONS["patch_actions"], agent_actions.patches(changes))
        await fill(_NEW_APPROVALS, approvals.inserts(changes))
        await self._run(_APPROVALS["patch_approvals"], approvals.patches(changes))
        await self._run(_TIMERS["drop_timers"], timers.drops(changes))
        await self._run(_TIMERS["insert_timers"], timers.inserts(changes))
        await self._run(_OPERATIONS["insert_operations"], operations.inserts(changes))
        await self._run(_OPERATIONS["patch_operations"], operations.patches(changes))

    async def _copy(self, new: _New, rows: list[Row]) -> None:
        """New rows by COPY, for a fraction of what a statement costs both sides. It knows no conflicts."""
        if rows:
            await self._connection.copy_records_to_table(new.table, records=rows, columns=new.columns)

    async def _insert(self, new: _New, rows: list[Row]) -> None:
        """New rows by a statement that says what happens to a row that is there already."""
        await self._run(new.statement, rows)

    async def _run(self, statement: str, rows: list[Row]) -> None:
        """A statement over columns as arrays: one round trip for all rows.

        A column of nulls goes as an empty array, which `unnest` fills up; half of them are, and each element costs.
        """
        if rows:
            columns = zip(*rows, strict=True)
            await self._connection.execute(statement, *(() if c.count(None) == len(c) else c for c in columns))

    def _keep(self, changes: list[RunChange]) -> None:
        """Remembers open runs, the most recently changed last; an ended run seldom comes again."""
        for change in changes:
            if change.progress.outcome is None:
                self._kept[change.key] = change.progress
        while len(self._kept) > KEPT_RUNS:
            del self._kept[next(iter(self._kept))]
