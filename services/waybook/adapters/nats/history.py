"""Histories by batch direct get, page by page."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from waybook.adapters.nats.connection import Connection, Lost, Reply, resolve
from waybook.adapters.nats.errors import ApiError, port_error
from waybook.adapters.nats.frames import parse_headers, publish_frame
from waybook.adapters.nats.outcome import milliseconds
from waybook.engine.ports import PortMisconfigured, PortUnavailable, Record

PAGE_MESSAGES = 512
PAGE_BYTES = 4 * 1024 * 1024  # batch direct get has no flow control
_NATS = ("Nats-Stream", "Nats-Num-Pending", "Nats-Last-Sequence")


class _StreamConfig(msgspec.Struct, frozen=True):
    allow_direct: bool = False


class _StreamInfo(msgspec.Struct, frozen=True):
    config: _StreamConfig


class Page(msgspec.Struct):
    """The answers to one batch direct get; `pending` is how many messages are left behind it."""

    records: list[Record]
    pending: int


class DirectReads:
    """Batch direct gets of one stream. They may lag behind its leader."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._stream = stream
        self._subject = f"$JS.API.DIRECT.GET.{stream}"

    async def history(
        self, subject: str, after: int = 0, page: int = PAGE_MESSAGES, first: int | None = None
    ) -> AsyncIterator[Record]:
        """Messages on a subject above the sequence `after`, in order; the first page holds `first` of them, if given."""
        batch = first or page
        while True:
            got = await self._page({"batch": batch, "next_by_subj": subject, "seq": after + 1, "max_bytes": PAGE_BYTES})
            for record in got.records:
                yield record
            if not got.records or got.pending <= 0:
                return
            after, batch = got.records[-1].sequence, page

    async def last_sequences(self, subjects: list[str]) -> dict[str, int]:
        """The last sequence on each subject that has a message, as far as this replica knows; at most 1,024."""
        got = await self._page({"multi_last": subjects, "max_bytes": PAGE_BYTES})
        return {record.subject: record.sequence for record in got.records}

    async def last(self, subject: str) -> list[Record]:
        """The last message on each subject that the filter `subject` takes, in any order; at most 1,024."""
        return (await self._page({"multi_last": [subject], "max_bytes": PAGE_BYTES})).records

    async def _page(self, body: dict[str, object]) -> Page:
        done: asyncio.Future[int | Lost] = asyncio.get_running_loop().create_future()
        replies: list[Reply] = []

        def receive(answer: Reply | Lost) -> None:
            if not isinstance(answer, Reply):
                resolve(done, answer)
            elif answer.status:
                resolve(done, _pending(answer))
            else:
                replies.append(answer)

        inbox = self._connection.expect(self._subject, receive, many=True)
        try:
            self._connection.send(publish_frame(self._subject.encode(), inbox, msgspec.json.encode(body)))
            pending = await done
        finally:
            self._connection.forget(inbox)
        if not isinstance(pending, int):
            raise type(pending)(str(pending))
        if pending < 0:
            await self._explain()
        return Page([to_record(reply) for reply in replies], pending)

    async def _explain(self) -> None:
        """Why nobody answers a direct get: says so when the stream is missing or forbids it."""
        info = await self._connection.api(f"STREAM.INFO.{self._stream}", None, _StreamInfo)
        if isinstance(info, ApiError):
            raise port_error(info, f"read of {self._stream}")
        if not info.config.allow_direct:
            raise PortMisconfigured(f"stream {self._stream} must have allow_direct; run `waybook streams apply`")
        raise PortUnavailable(f"nobody answers direct gets of {self._stream}")


def _pending(end: Reply) -> int:
    """Messages left after a page; -1 when nobody serves direct gets. A 404 is an empty page."""
    match end.status:
        case 204:
            return int(parse_headers(end.headers).get("Nats-Num-Pending", "0"))
        case 503:
            return -1
        case _:
            return 0


def to_record(reply: Reply) -> Record:
    """A message as direct get hands it out: its own headers, and where it stands in headers of the server's."""
    headers = parse_headers(reply.headers)
    for name in _NATS:
        headers.pop(name, None)
    return Record(
        subject=headers.pop("Nats-Subject"),
        sequence=int(headers.pop("Nats-Sequence")),
        payload=reply.payload,
        headers=headers,
        stored_at=milliseconds(headers.pop("Nats-Time-Stamp")),
    )
