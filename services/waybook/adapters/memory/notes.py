"""AUDITIN, TRACE, DEAD, and answers, in memory."""

from collections.abc import Mapping

from waybook.adapters.memory.faults import Faults


class MemoryNotes:
    """The port Notes; what was written can be read from its attributes."""

    def __init__(self, *, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.audited: dict[tuple[str, str], bytes] = {}  # (tenant, record) -> payload
        self.traced: list[tuple[str, str, bytes]] = []  # (tenant, kind, payload)
        self.buried: list[tuple[str, bytes, dict[str, str]]] = []  # (subject, payload, headers)
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
            self.buried.append((subject, payload, dict(headers)))


class MemoryReplies:
    """The port Replies; answers are kept by subject."""

    def __init__(self) -> None:
        self.answers: dict[str, list[bytes]] = {}

    async def answer(self, subject: str, payload: bytes) -> None:
        """See Replies."""
        self.answers.setdefault(subject, []).append(payload)
