"""STATE in memory."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from waybook.adapters.commit_size import check_size
from waybook.adapters.large_fields import check_events
from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.faults import Faults
from waybook.engine.ports import AppendConflict, Clock, Draft, OutcomeUnknown, PortUnavailable, Record, StreamFull
from waybook.events.large_fields import MARK, join, split
from waybook.events.subjects import parse_state_subject


class MemoryStateLog:
    """The port StateLog. `most` is how many commits the stream takes, None: no limit. Large fields are kept beside it."""

    def __init__(
        self, clock: Clock | None = None, *, stream: str = "STATE_g1_00", most: int | None = None,
        faults: Faults | None = None,
    ) -> None:  # fmt: skip
        self.faults = faults or Faults()
        self._clock = clock or ManualClock()
        self._stream = stream
        self._most = most
        self._records: list[Record] = []
        self._by_subject: dict[str, list[Record]] = {}
        self._aside: dict[str, bytes] = {}

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return self._stream

    @property
    def records(self) -> list[Record]:
        """All commits in the order of their sequences, large fields in their places."""
        return [self._whole(record) for record in self._records]

    @property
    def stored(self) -> list[Record]:
        """All commits as they are stored."""
        return list(self._records)

    async def fitting(self, subject: str, payload: bytes) -> bytes:
        """See StateLog."""
        self.faults.check()
        check_events(subject, payload)
        smaller, objects = split(payload, parse_state_subject(subject))
        self._aside.update(objects)
        return smaller

    def _whole(self, record: Record) -> Record:
        if MARK not in record.payload:
            return record
        payload = join(record.payload, parse_state_subject(record.subject), self._aside)
        return msgspec.structs.replace(record, payload=payload)

    async def append(self, draft: Draft, *, tries: int | None = None) -> int:
        """See StateLog."""
        check_size(draft)
        while True:
            await asyncio.sleep(0)
            if self.faults.is_away and tries is None:
                await self.faults.until_back()
            try:
                self.faults.check()
                sequence = self._store(draft)
                if not self.faults.answer_is_lost():
                    return sequence
            except PortUnavailable as exc:
                if tries is not None and tries <= 1:
                    raise OutcomeUnknown(f"append to {draft.subject}: {exc}") from exc
            tries = None if tries is None else tries - 1

    def _store(self, draft: Draft) -> int:
        commits = self._by_subject.setdefault(draft.subject, [])
        last = commits[-1].sequence if commits else 0
        if last != draft.expected:
            successor = next((r for r in commits if r.sequence > draft.expected), None)
            if successor is not None and successor.headers.get("Waybook-Commit") == draft.commit:
                return successor.sequence
            raise AppendConflict(f"another commit follows {draft.expected} on {draft.subject}")
        if self._most is not None and len(self._records) >= self._most:
            raise StreamFull(f"{self._stream} holds {self._most} commits, that is its limit")
        record = Record(draft.subject, len(self._records) + 1, draft.payload, dict(draft.headers), self._clock.now())
        self._records.append(record)
        commits.append(record)
        return record.sequence

    async def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        """See StateLog."""
        self.faults.check()
        for record in list(self._by_subject.get(subject, [])):
            if record.sequence > after:
                yield self._whole(record)

    async def tail(self, subject: str) -> Record | None:
        """See StateLog."""
        self.faults.check()
        commits = self._by_subject.get(subject)
        return commits[-1] if commits else None
