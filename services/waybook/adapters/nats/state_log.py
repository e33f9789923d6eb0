"""STATE on JetStream."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable
from functools import lru_cache

from waybook.adapters.commit_size import check_size
from waybook.adapters.large_fields import LargeFields
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.group_commit import GroupCommit, GroupSettings
from waybook.adapters.nats.history import DirectReads
from waybook.adapters.nats.objects import NatsObjects
from waybook.adapters.nats.outcome import LeaderReads
from waybook.engine.hooks import Hook, ignore
from waybook.engine.ports import Draft, OutcomeUnknown, Record
from waybook.engine.snapshot import EVERY
from waybook.events.errors import InvalidInput
from waybook.events.large_fields import MARK

_LITERAL = re.compile(r"[^\s.*>]+(?:\.[^\s.*>]+)*")
SUBJECTS_KEPT = 4096


@lru_cache(SUBJECTS_KEPT)
def _is_literal(subject: str) -> bool:
    """Whether the subject names one run. A run's commits ask again and again, so the answer is kept."""
    return _LITERAL.fullmatch(subject) is not None


class NatsStateLog:
    """The port StateLog on one stream. `hook` is told how appends are grouped."""

    def __init__(
        self, connection: Connection, stream: str, group: GroupSettings | None = None, hook: Hook = ignore
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._commits = GroupCommit(connection, stream, group or GroupSettings(), hook)
        self._direct = DirectReads(connection, stream)
        self._leader = LeaderReads(connection, stream)
        self._large = LargeFields(NatsObjects(connection))

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return self._stream

    @property
    def batches(self) -> int:
        """Atomic batches sent since the start."""
        return self._commits.batches

    async def fitting(self, subject: str, payload: bytes) -> bytes:
        """See StateLog."""
        return await self._large.fitting(subject, payload)

    def append(self, draft: Draft, *, tries: int | None = None) -> Awaitable[int]:
        """See StateLog. With `tries` it also gives up when so many request timeouts have passed."""
        check_size(draft)
        if not _is_literal(draft.subject):
            raise InvalidInput(f"{draft.subject!r} is not a literal subject")
        future = self._commits.submit(draft, tries)
        return future if tries is None else self._in_time(future, draft, tries)

    async def _in_time(self, future: asyncio.Future[int], draft: Draft, tries: int) -> int:
        try:
            async with asyncio.timeout(tries * self._connection.settings.request_timeout_s):
                return await future
        except TimeoutError as exc:
            raise OutcomeUnknown(f"append to {draft.subject}: no answer") from exc

    async def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        """See StateLog. After so many commits as the first page holds, a reader may go on from a snapshot instead."""
        async for record in self._direct.history(subject, after, first=EVERY if after == 0 else None):
            yield record if MARK not in record.payload else await self._large.whole(record)

    async def tail(self, subject: str) -> Record | None:
        """See StateLog."""
        return await self._leader.last(subject)
