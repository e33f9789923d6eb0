"""AUDITIN, TRACE, DEAD, and answers, in memory."""

from collections.abc import Mapping

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import matches
from waybook.adapters.memory.faults import Faults
from waybook.engine.ports import Clock, Record
from waybook.events.subjects import RunKey, dead_subject, dead_subjects


class MemoryNotes:
    """The port Notes; what was written can be read from its attributes."""

    def __init__(self, clock: Clock | None = None, *, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self._clock = clock or ManualClock()
        self.audited: dict[tuple[str, str], bytes] = {}  # (tenant, record) -> payload
        self.traced: list[tuple[str, str, bytes]] = []  # (tenant, kind, payload)
        self.dead: list[Record] = []
        self._buried_ids: set[str] = set()

    async def audit(self, tenant: str, record: str, payload: bytes) -> None:
        """See Notes."""
        self.faults.check()
        self.audited.setdefault((tenant, record), payload)

    async def trace(self, tenant: str, kind: str, payload: bytes) -> None:
        """See Notes."""
        if not self.faults.is_away:
            self.traced.append((tenant, kind, payload))

    async def bury(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> None:
        """See Notes."""
        self.faults.check()
        name = headers.get("Nats-Msg-Id") or f"{subject}\0{payload!r}"
        if name not in self._buried_ids:
            self._buried_ids.add(name)
            place = dead_subject(subject)
            self.dead.append(Record(place, len(self.dead) + 1, payload, dict(headers), self._clock.now()))

    async def buried(self, key: RunKey) -> list[Record]:
        """See Notes."""
        self.faults.check()
        last = {record.subject: record for record in self.dead if matches(dead_subjects(key), record.subject)}
        return sorted(last.values(), key=lambda record: record.sequence)


class MemoryReplies:
    """The port Replies; answers are kept by subject."""

    def __init__(self) -> None:
        self.answers: dict[str, list[bytes]] = {}

    async def answer(self, subject: str, payload: bytes) -> None:
        """See Replies."""
        self.answers.setdefault(subject, []).append(payload)
