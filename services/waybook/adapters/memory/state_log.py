"""STATE in memory."""

import asyncio
from collections.abc import AsyncIterator

from waybook.adapters.commit_size import check_size
from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.faults import Faults
from waybook.engine.ports import AppendConflict, Clock, Draft, OutcomeUnknown, PortUnavailable, Record, StreamFull


class MemoryStateLog:
    """The port StateLog. `most` is how many commits the stream takes, None: no limit."""

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

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return self._stream

    @property
    def records(self) -> list[Record]:
        """All commits in the order of their sequences."""
        return list(self._records)

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
                yield record

    async def tail(self, subject: str) -> Record | None:
        """See StateLog."""
        self.faults.check()
        commits = self._by_subject.get(subject)
        return commits[-1] if commits else None
