"""AUDITIN, TRACE, DEAD, and answers to commands."""

import asyncio
import logging
from collections.abc import Mapping

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.history import DirectReads
from waybook.adapters.nats.publishing import Publisher
from waybook.engine.ports import Outgoing, PortUnavailable, Record
from waybook.events.errors import InvalidInput
from waybook.events.headers import MSG_ID
from waybook.events.subjects import RunKey, dead_subject, dead_subjects, digest_token

log = logging.getLogger(__name__)

TRACE_UNSENT_BYTES = 4 * 1024 * 1024  # above it the server is slow: traces wait a moment, then they are dropped
TRACE_WAITS_S = 2.0


HEADERS_LIMIT = 60 * 1024  # the server takes 64 KiB, with the publisher's lines
HEADER_ROOM = 512  # what the publisher's own header lines take
CUT = "Waybook-Cut"


class NatsNotes:
    """The port Notes. `waits_s`: how long traces wait for a server that does not take them."""

    def __init__(self, connection: Connection, *, waits_s: float = TRACE_WAITS_S) -> None:
        self._connection = connection
        self._waits_s = waits_s
        self._audit = Publisher(connection, "AUDITIN")
        self._dead = Publisher(connection, "DEAD")
        self._graves = DirectReads(connection, "DEAD")
        self._stuck = False

    async def audit(self, tenant: str, record: str, payload: bytes) -> None:
        """See Notes; stored on `audit.in.<tenant>.<record>`. Raises StreamFull, PortUnavailable, PortMisconfigured."""
        await self._audit.publish(Outgoing(f"audit.in.{tenant}.{record}", payload, record))

    async def trace(self, tenant: str, kind: str, payload: bytes) -> None:
        """See Notes; sent to `trace.<tenant>.<kind>` and not waited for, unless much is on its way to the server."""
        if not self._connection.connected or not await self._has_room():
            return
        try:
            self._connection.publish(f"trace.{tenant}.{kind}", payload)
        except (InvalidInput, PortUnavailable) as exc:
            log.info("a trace was dropped", extra={"action": "trace_dropped", "kind": kind, "error": str(exc)})

    async def _has_room(self) -> bool:
        """Whether the server takes what is sent to it. One that does not is waited for once, 2 s, until it does again."""
        end = asyncio.get_running_loop().time() + self._waits_s
        while self._connection.unsent > TRACE_UNSENT_BYTES:
            if self._stuck or asyncio.get_running_loop().time() > end:
                self._stuck = True
                return False
            await asyncio.sleep(0.005)
        self._stuck = False
        return True

    async def bury(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> None:
        """See Notes; stored on `dead.<subject>`, once for each command id (`Nats-Msg-Id` in `headers`).

        A message that was as large as the server takes is cut, and its size noted in `Waybook-Cut`.
        """
        kept = {name: value for name, value in headers.items() if name != MSG_ID and not name.startswith("Nats-")}
        named = headers.get(MSG_ID) or digest_token(subject, payload)
        room = self._connection.max_payload - HEADER_ROOM
        too_much = _size(kept) > HEADERS_LIMIT or len(payload) + _size(kept) + len(named) > room
        if self._connection.connected and too_much:
            kept = {name: value for name, value in kept.items() if name.startswith("Waybook-") and len(value) <= 1024}
            kept[CUT] = str(len(payload))
            payload = payload[: room - _size(kept) - len(named)]
        await self._dead.publish(Outgoing(dead_subject(subject), payload, named, kept))

    async def buried(self, key: RunKey) -> list[Record]:
        """See Notes."""
        return sorted(await self._graves.last(dead_subjects(key)), key=lambda record: record.sequence)


class NatsReplies:
    """The port Replies."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def answer(self, subject: str, payload: bytes) -> None:
        """See Replies; an answer that cannot be sent is dropped: its client asks by command id."""
        try:
            self._connection.publish(subject, payload)
        except PortUnavailable as exc:
            log.info("an answer was not sent", extra={"action": "answer_lost", "subject": subject, "error": str(exc)})


def _size(headers: Mapping[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode()) + 4 for name, value in headers.items())
