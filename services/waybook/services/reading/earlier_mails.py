"""Knowledge from the mails themselves: the thread of a mail, and what its sender wrote in other threads."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import asyncpg

from waybook.inbox.intake.quotes import split_reply
from waybook.inbox.knowledge import NoKnowledge, Query, ThreadMessage
from waybook.inbox.starting import AGENT
from waybook.projections.errors import NoReadModels
from waybook.projections.read_models import FRONT, ReadModels
from waybook.projections.session import Connection, port_errors

if TYPE_CHECKING:
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
else:
    Pool = asyncpg.Pool  # not generic at run time

CONNECTIONS = 4
TIMEOUT_S = 10.0
MESSAGE = 1500
"""Characters of an earlier message of the thread: five of them leave half of the context's budget to other things."""
LINE = 240
"""Characters of the line that a mail of another thread becomes."""


class EarlierMails(NoKnowledge):
    """What the sender of a mail wrote before and was answered, from the read models in PostgreSQL.

    Messages of the thread come in the order in which they arrived, without the words that they quote. Mails of other
    threads are activities, ranked by the words that they share with the mail. Whoever else wrote in the thread is
    left out: a person who once got one of its mails must not learn the others from our reply. So is everything that
    the scan did not let pass, and everything where a sender is not vouched for. Read models lag behind STATE, so this
    is a hint and decides nothing; where there are none yet, nothing is known.

    Every method raises DatabaseUnavailable (a PortError) while PostgreSQL is away.
    """

    def __init__(self, pool: Pool, tenant: str, *, agent: str = AGENT, front: str = FRONT) -> None:
        self._pool = pool
        self._of = {"tenant": tenant, "agent": agent}
        self._front = front

    @classmethod
    @asynccontextmanager
    async def open(cls, database_url: str, tenant: str, *, front: str = FRONT) -> AsyncIterator["EarlierMails"]:
        """The source for the time of the block. Connects when first asked, so PostgreSQL may be away here."""
        pool = asyncpg.create_pool(
            database_url,
            min_size=0,
            max_size=CONNECTIONS,
            timeout=TIMEOUT_S,
            command_timeout=TIMEOUT_S,
            server_settings={"application_name": "waybook knowledge", "timezone": "UTC"},
        )
        async with pool:
            yield cls(pool, tenant, front=front)

    async def thread(self, query: Query, limit: int) -> Sequence[ThreadMessage]:
        sender, thread, run = query.sender, query.thread, query.run or ""
        if not sender or not thread:
            return ()
        rows = await self._ask(
            lambda models: models.earlier_in_thread(sender=sender, thread=thread, run=run, limit=limit, **self._of)
        )
        messages: list[ThreadMessage] = []
        for row in rows:
            text = split_reply(row["text"]).new[:MESSAGE]
            messages.append(ThreadMessage(row["run"], text, author=row["sender"], at=row["received_at"]))
            if row["reply"]:
                at = row["processed_at"] or row["received_at"]
                messages.append(ThreadMessage(f"{row['run']}/reply", row["reply"][:MESSAGE], at=at, ours=True))
        return sorted(messages, key=lambda m: m.at or 0)[-limit:]

    async def activities(self, query: Query, limit: int) -> Sequence[str]:
        sender, run = query.sender, query.run or ""
        if not sender:
            return ()
        rows = await self._ask(
            lambda models: models.earlier_of_sender(
                sender=sender, thread=query.thread, words=query.text, run=run, limit=limit, **self._of
            )
        )
        return tuple(_line(row) for row in rows)

    async def _ask(self, question: Callable[[ReadModels], Awaitable[list[dict[str, Any]]]]) -> list[dict[str, Any]]:
        with port_errors():
            async with self._pool.acquire(timeout=TIMEOUT_S) as connection:
                try:
                    return await question(ReadModels(cast(Connection, connection), self._front))
                except NoReadModels:
                    return []  # the projector is just making them


def _line(row: dict[str, Any]) -> str:
    """A mail in one line: its day, its subject, and how it begins."""
    day = datetime.fromtimestamp(row["received_at"] / 1000, UTC).date().isoformat()
    words = " ".join(split_reply(row["text"]).new.split())
    return f"{day} mail “{' '.join((row['subject'] or '').split())[:80]}”: {words}"[:LINE]
