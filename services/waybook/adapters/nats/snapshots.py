"""The key-value bucket `snapshots`: what is lost of it costs a longer load, so nothing waits for an answer."""

import logging

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.history import PAGE_BYTES, DirectReads
from waybook.engine.ports import PortUnavailable
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RunKey

log = logging.getLogger(__name__)

PART_BYTES = 512 * 1024  # a server takes messages of 1 MiB by default
MOST_BYTES = PAGE_BYTES - 64 * 1024  # all parts come in one answer
UNSENT_BYTES = 4 * 1024 * 1024  # above it the server is slow, and nothing is kept


class NatsSnapshots:
    """The port Snapshots. A run's bytes stand in parts, `<tenant>.<agent>.<run>.0` and so on; the first says how many."""

    def __init__(self, connection: Connection, bucket: str = "snapshots") -> None:
        self._connection = connection
        self._prefix = f"$KV.{bucket}"
        self._reads = DirectReads(connection, f"KV_{bucket}")

    async def put(self, key: RunKey, data: bytes) -> None:
        """See Snapshots. More than about 4 MB are not kept."""
        if not self._connection.connected or self._connection.unsent > UNSENT_BYTES or len(data) > MOST_BYTES:
            log.info(
                "a snapshot was not kept", extra={"action": "snapshot_dropped", "run": str(key), "bytes": len(data)}
            )
            return
        parts = [data[i : i + PART_BYTES] for i in range(0, max(1, len(data)), PART_BYTES)]
        try:
            for number, part in enumerate(parts):
                head = b"%d\n" % len(parts) if number == 0 else b""
                self._connection.publish(f"{self._subject(key)}.{number}", head + part)
        except (InvalidInput, PortUnavailable) as exc:
            log.info(
                "a snapshot was not kept", extra={"action": "snapshot_dropped", "run": str(key), "error": str(exc)}
            )

    async def get(self, key: RunKey) -> bytes | None:
        """See Snapshots."""
        try:
            records = await self._reads.last(f"{self._subject(key)}.*")
        except PortUnavailable as exc:
            log.info("no snapshot was read", extra={"action": "snapshot_unread", "run": str(key), "error": str(exc)})
            return None
        parts = {int(record.subject.rpartition(".")[2]): record.payload for record in records}
        count, _, first = parts.get(0, b"").partition(b"\n")
        wanted = int(count) if count.isdigit() else 0
        if wanted == 0 or any(number not in parts for number in range(wanted)):
            return None
        return b"".join([first, *(parts[number] for number in range(1, wanted))])

    def _subject(self, key: RunKey) -> str:
        return f"{self._prefix}.{key.tenant}.{key.agent}.{key.run}"
