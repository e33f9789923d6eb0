"""What became of an append whose answer is missing: the leader's word on who took its place.

A direct get may be stale on a replicated stream, so only `STREAM.MSG.GET`, which the leader answers, is asked.
"""

import base64
from datetime import UTC, datetime

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.errors import NO_MESSAGE, ApiError, port_error
from waybook.adapters.nats.frames import parse_headers
from waybook.engine.ports import Draft, Record
from waybook.events.headers import COMMIT


class _Stored(msgspec.Struct, frozen=True):
    subject: str
    seq: int
    time: str
    hdrs: str = ""
    data: str = ""


class _Answer(msgspec.Struct, frozen=True):
    message: _Stored


class LeaderReads:
    """Reads of one stream that its leader answers."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._subject = f"STREAM.MSG.GET.{stream}"

    async def last(self, subject: str) -> Record | None:
        """The last message on a subject. Raises PortUnavailable."""
        return await self._read({"last_by_subj": subject})

    async def successor(self, draft: Draft) -> Record | None:
        """The message that stands where `draft` wants to stand. Raises PortUnavailable."""
        return await self._read({"seq": draft.expected + 1, "next_by_subj": draft.subject})

    async def at(self, sequence: int) -> Record | None:
        """The message with this sequence, when it is still there. Raises PortUnavailable."""
        return await self._read({"seq": sequence})

    async def _read(self, body: dict[str, int | str]) -> Record | None:
        answer = await self._connection.api(self._subject, body, _Answer)
        if isinstance(answer, ApiError):
            if answer.err_code in NO_MESSAGE:
                return None
            raise port_error(answer, self._subject)
        stored = answer.message
        return Record(
            subject=stored.subject,
            sequence=stored.seq,
            payload=base64.b64decode(stored.data),
            headers=parse_headers(base64.b64decode(stored.hdrs)) if stored.hdrs else {},
            stored_at=milliseconds(stored.time),
        )


def is_own(draft: Draft, record: Record) -> bool:
    """Whether a stored message is this very commit. Ids are made of the bytes, so equal ids are equal commits."""
    return record.headers.get(COMMIT) == draft.commit


def milliseconds(stamp: str) -> int:
    """Milliseconds since the epoch of a server's RFC 3339 time."""
    return nanoseconds(stamp) // 1_000_000


def nanoseconds(stamp: str) -> int:
    """Nanoseconds since the epoch of a server's RFC 3339 time, which has up to nine decimals and may have none."""
    seconds, _, fraction = stamp.removesuffix("Z").partition(".")
    moment = datetime.fromisoformat(seconds).replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000_000 + int(fraction.ljust(9, "0")[:9] or 0)
