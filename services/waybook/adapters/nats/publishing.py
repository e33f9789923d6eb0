"""Acknowledged publishes with an id, one by one or many at once."""

import asyncio
from collections.abc import Iterator, Sequence

from waybook.adapters.nats.connection import Connection, Reply
from waybook.adapters.nats.errors import PubAck, meaning, port_error
from waybook.adapters.nats.frames import header_block, publish_frame
from waybook.adapters.nats.group_commit import read_ack
from waybook.engine.ports import Outgoing, PortUnavailable
from waybook.events.headers import EXPECTED_STREAM, MSG_ID

SIDE_BY_SIDE = 64  # single publishes under way at once
BATCH = 200  # members of one atomic batch
BATCH_BYTES = 4 * 1024 * 1024


class Publisher:
    """Stores messages in one stream."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._stream = stream
        self._batch_allowed = True
        self._batch_count = 0

    async def publish(self, message: Outgoing) -> bool:
        """Stores one; False when its id was stored before. Raises as CommandQueue.publish."""
        answer = await self._connection.request(message.subject, message.payload, header_block(self._headers(message)))
        ack = read_ack(answer)
        if ack.error is None:
            return not ack.duplicate
        if answer.status:
            raise PortUnavailable(f"no stream takes {message.subject}; is {self._stream} there and its leader up?")
        raise port_error(ack.error, f"publish to {self._stream}")

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[bool]:
        """Stores many, in order within a batch, at a fraction of the fsyncs; False where the id was stored before.

        Raises as `publish`; then any part may be stored, and all of it may be sent again with the same ids.
        """
        stored: list[bool] = []
        for group in _groups(messages):
            if len(group) > 1 and self._batch_allowed and await self._batch(group):
                stored += [True] * len(group)
            else:
                stored += await self._singly(group)
        return stored

    async def _singly(self, messages: Sequence[Outgoing]) -> list[bool]:
        slots = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one(message: Outgoing) -> bool:
            async with slots:
                return await self.publish(message)

        results = await asyncio.gather(*(one(m) for m in messages), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result is True for result in results]

    async def _batch(self, messages: Sequence[Outgoing]) -> bool:
        """Stores all or none; False when none, because some id was stored before or batches are refused."""
        self._batch_count += 1
        batch = f"{self._connection.token}-{self._batch_count}"
        done: asyncio.Future[PubAck | Exception] = asyncio.get_running_loop().create_future()

        def receive(answer: object) -> None:
            if done.done() or (isinstance(answer, Reply) and not answer.payload and not answer.status):
                return  # the first member was taken
            done.set_result(read_ack(answer) if isinstance(answer, Reply) else answer)  # type: ignore[arg-type]

        reply = self._connection.expect(messages[0].subject, receive, many=True)
        try:
            self._connection.send(b"".join(self._frames(messages, batch, reply)))
            answer = await done
        finally:
            self._connection.forget(reply)
        return self._read_batch(answer)

    def _frames(self, messages: Sequence[Outgoing], batch: str, reply: bytes) -> Iterator[bytes]:
        last = len(messages)
        for number, message in enumerate(messages, 1):
            headers = self._headers(message) | {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
            if number == last:
                headers["Nats-Batch-Commit"] = "1"
            block = header_block(headers)
            self._connection.check_size(message.subject, len(message.payload) + len(block))
            to = reply if number in (1, last) else b""
            yield publish_frame(message.subject.encode(), to, message.payload, block)

    def _read_batch(self, answer: PubAck | Exception) -> bool:
        if isinstance(answer, Exception):
            raise answer
        if answer.error is None:
            return True
        match meaning(answer.error):
            case "full" | "away":
                raise port_error(answer.error, f"publish to {self._stream}")
            case "off":
                self._batch_allowed = False
        return False  # singly, each gets its own answer

    def _headers(self, message: Outgoing) -> dict[str, str]:
        return {**message.headers, MSG_ID: message.command, EXPECTED_STREAM: self._stream}


def _groups(messages: Sequence[Outgoing]) -> list[list[Outgoing]]:
    groups: list[list[Outgoing]] = []
    size = 0
    ids: set[str] = set()
    for message in messages:
        if not groups or len(groups[-1]) >= BATCH or size > BATCH_BYTES or message.command in ids:
            groups.append([])
            size = 0
            ids.clear()
        groups[-1].append(message)
        ids.add(message.command)
        size += len(message.payload)
    return groups
