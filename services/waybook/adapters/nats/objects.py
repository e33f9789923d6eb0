"""An object bucket, in the format of the NATS object store (ADR-20), so that its tools can read it.

nats-py's own store reads through a push subscription that it may leak and trusts stale reads.
"""

import asyncio
import base64
import hashlib
from datetime import UTC, datetime

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.errors import port_error
from waybook.adapters.nats.frames import header_block
from waybook.adapters.nats.group_commit import read_ack
from waybook.adapters.nats.history import DirectReads
from waybook.adapters.nats.outcome import LeaderReads
from waybook.engine.ports import PortUnavailable
from waybook.events.headers import EXPECTED_STREAM
from waybook.events.subjects import digest_token

CHUNK_BYTES = 128 * 1024
SIDE_BY_SIDE = 16
READ_TRIES = 4
ROLLUP = "Nats-Rollup"


class _Options(msgspec.Struct, frozen=True, omit_defaults=True):
    max_chunk_size: int = 0


class _Meta(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    bucket: str
    nuid: str
    size: int = 0
    mtime: str = ""
    chunks: int = 0
    digest: str = ""
    deleted: bool = False
    options: _Options | None = None


class _Purged(msgspec.Struct, frozen=True):
    success: bool = False


class NatsObjects:
    """The port Objects on one bucket."""

    def __init__(self, connection: Connection, bucket: str = "artifacts") -> None:
        self._connection = connection
        self._bucket = bucket
        self._stream = f"OBJ_{bucket}"
        self._leader = LeaderReads(connection, self._stream)
        self._direct = DirectReads(connection, self._stream)
        self._count = 0

    async def put(self, name: str, data: bytes) -> None:
        """See Objects; stored when it returns. The same bytes under the same name are not written again.

        Raises StreamFull, PortUnavailable (put again), PortMisconfigured for a missing bucket.
        """
        digest = "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
        old = await self._meta(name)
        if old is not None and not old.deleted and old.digest == digest:
            return
        self._count += 1
        nuid = digest_token(self._connection.token, name, str(self._count))
        chunks = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)]
        for i in range(0, len(chunks), SIDE_BY_SIDE):
            # Chunks stay in order on the wire; a wrong order after a lost one fails the digest when it is read.
            group = [self._store(self._chunk_subject(nuid), chunk, {}) for chunk in chunks[i : i + SIDE_BY_SIDE]]
            for result in await asyncio.gather(*group, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
        meta = _Meta(
            name, self._bucket, nuid, len(data), datetime.now(UTC).isoformat(), len(chunks), digest,
            options=_Options(CHUNK_BYTES),
        )  # fmt: skip
        await self._store(self._meta_subject(name), msgspec.json.encode(meta), {ROLLUP: "sub"})
        if old is not None and old.nuid:
            purge = {"filter": self._chunk_subject(old.nuid)}
            await self._connection.ask(f"STREAM.PURGE.{self._stream}", purge, _Purged)

    async def get(self, name: str) -> bytes:
        """See Objects. Raises KeyError, PortUnavailable also when the bytes are not there yet or not those stored."""
        for attempt in range(READ_TRIES):
            meta = await self._meta(name)
            if meta is None or meta.deleted:
                raise KeyError(name)
            parts = [r.payload async for r in self._direct.history(self._chunk_subject(meta.nuid), page=32)]
            data = b"".join(parts)
            if meta.digest == "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode():
                return data
            await asyncio.sleep(0.05 * 2**attempt)  # a replica may lag behind
        raise PortUnavailable(f"object {name!r} in bucket {self._bucket}: its chunks do not match its digest")

    async def _meta(self, name: str) -> _Meta | None:
        record = await self._leader.last(self._meta_subject(name))
        return None if record is None else msgspec.json.decode(record.payload, type=_Meta)

    async def _store(self, subject: str, payload: bytes, headers: dict[str, str]) -> None:
        block = header_block({EXPECTED_STREAM: self._stream, **headers})
        answer = await self._connection.request(subject, payload, block)
        error = read_ack(answer).error
        if answer.status:
            raise PortUnavailable(f"no stream takes {subject}; is the bucket {self._bucket} there?")
        if error is not None:
            raise port_error(error, f"object in bucket {self._bucket}")

    def _chunk_subject(self, nuid: str) -> str:
        return f"$O.{self._bucket}.C.{nuid}"

    def _meta_subject(self, name: str) -> str:
        return f"$O.{self._bucket}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"
