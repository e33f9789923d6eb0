"""Reads a stream of STATE in order, from the checkpoint on, without a hole.

The consumer's own position is not trusted: a reader that died may have taken what it never stored, so each `open` sets
the consumer to the checkpoint. What is buffered here is bounded in messages and bytes.
"""

import asyncio
import logging
import re
from typing import NamedTuple, TypeAlias

import msgspec

from waybook.adapters.nats.connection import Connection, Reply
from waybook.adapters.nats.frames import publish_frame
from waybook.engine.ports import PortError
from waybook.events import headers
from waybook.events.codec import Codec, NoCommit
from waybook.events.subjects import parse_state_subject
from waybook.projections.batch import is_projected
from waybook.projections.consumer import Consumer
from waybook.projections.decoding import CommitReader
from waybook.projections.errors import LogGap, LogShorter, ReaderLost
from waybook.projections.mark import Mark
from waybook.projections.progress import Entry
from waybook.projections.stream import Stream

log = logging.getLogger(__name__)

BATCH_MESSAGES = 2000
BATCH_BYTES = 4 * 1024 * 1024
HEARTBEAT_S = 1.0
EXPIRES_S = 5.0

_COMMIT_ID = re.compile(rb"\r\n" + headers.COMMIT.encode() + rb": *([^\r\n]*)", re.IGNORECASE)
_DELIVERED = re.compile(rb"\r\nNats-Last-Stream: *(\d+)")
_ENDED = frozenset({404, 408, 409})


Taken: TypeAlias = tuple[bytes, bytes, bytes | None, bytes]
"""A message as it came: subject, ack subject, header block, payload."""


class Batch(NamedTuple):
    """Commits in the order of the stream. `last` is the mark after them; `commits` counts also those without rows."""

    entries: list[Entry]
    last: Mark
    commits: int
    ack_subject: bytes


class LogReader:
    """One reader of one stream. `open` it at a mark; after an error `open` it again."""

    def __init__(self, connection: Connection, stream: str, consumer: Consumer, codec: Codec | None = None) -> None:
        self.stream = Stream(connection, stream)
        self._connection = connection
        self._consumer = consumer
        self._decode = CommitReader(codec or Codec()).decode
        self._inbox = ""
        self._loop = asyncio.get_running_loop()
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}".encode()
        self._taken: list[Taken] = []
        self._bytes = 0
        self._number = 0
        self._missing = 0
        self._more = False
        self._roused = False
        self._heard = 0.0
        self._lost: str | None = "not opened"
        self._wake: asyncio.Future[None] | None = None
        self._last = 0
        self._received = 0
        connection.watch(self._on_connection)

    async def open(self, mark: Mark) -> None:
        """Sets the consumer behind `mark`.

        Raises LogShorter, LogGap when the stream does not continue it; ReaderLost when it cannot be told now;
        PortMisconfigured when the server refuses.
        """
        self.close()
        try:
            await self._check(mark)
            self._inbox = self._connection.inbox()
            self._connection.subscribe(self._inbox + ".*", self._receive)
            await self._consumer.place(self._connection, mark.sequence + 1)
        except PortError as exc:
            raise ReaderLost(str(exc)) from exc
        self._taken, self._bytes, self._missing = [], 0, 0
        self._last = self._received = mark.sequence
        self._lost = None
        self._pull()

    def close(self) -> None:
        """Lets go of the consumer, so that what it delivers does not come here any more."""
        self._lost = "not opened"
        if self._inbox:
            inbox, self._inbox = self._inbox, ""
            self._connection.unsubscribe(inbox + ".*")

    async def _check(self, mark: Mark) -> None:
        name = self.stream.name
        state = await self.stream.state()
        if state is None:
            if mark.sequence:
                raise LogShorter(f"stream {name} is missing, but the read models contain it up to {mark.sequence}")
            raise ReaderLost(f"there is no stream {name} yet")
        if state.last_seq < mark.sequence:
            raise LogShorter(
                f"stream {name} ends at {state.last_seq}, before the checkpoint {mark.sequence}: commits were lost; "
                "restore the stream, or run `waybook projections rebuild` to go by what is left"
            )
        if mark.commit_id:
            stored = await self.stream.message(mark.sequence)
            if stored is not None and stored.commit_id not in ("", mark.commit_id):
                raise LogShorter(
                    f"stream {name} holds another commit at the checkpoint {mark.sequence}: it was replaced; "
                    "run `waybook projections rebuild`"
                )
        if state.last_seq > mark.sequence and await self.stream.message(mark.sequence + 1) is None:
            raise LogGap(
                f"stream {name} lacks {mark.sequence + 1} while its last sequence is {state.last_seq}: "
                "a commit was deleted; restore the stream"
            )

    async def next(self, not_before: float = 0.0, last: int | None = None) -> Batch | None:
        """The next commits, at least one; None when none came for a heartbeat.

        A batch that is not full comes no sooner than `not_before`, a time of the running loop. None of its commits
        is above the sequence `last`.

        Raises ReaderLost on a hole or a lost consumer, the codec's errors for a commit that cannot be read.
        """
        await self._gather(not_before)
        if self._lost is not None and not self._taken:
            raise ReaderLost(self._lost)
        if not self._taken:
            if self._loop.time() > self._heard + 3 * HEARTBEAT_S:
                raise ReaderLost("the consumer is silent")
            return None
        taken = self._cut(BATCH_MESSAGES if last is None else min(BATCH_MESSAGES, last - self._last))
        if self._more and not self._missing:
            self._pull()
        return self._batch(taken)

    async def _gather(self, not_before: float) -> None:
        """Lets the server deliver all that there is in one go: many small deliveries cost both sides more."""
        if self._missing:
            await self._delivered()
        early = self._loop.time() < not_before
        if self._full or self._missing or (self._taken and not early):
            return
        if early:
            await self._wait(not_before - self._loop.time())
        self._pull()
        await self._delivered()

    async def _delivered(self) -> None:
        """Returns when the request under way has ended, at the latest after a heartbeat."""
        until = self._loop.time() + HEARTBEAT_S
        while self._missing and self._lost is None and (left := until - self._loop.time()) > 0:
            if not await self._wait(left):
                return

    def ack(self, batch: Batch) -> None:
        """Tells the server how far we are; for people who look at the consumer, nothing depends on it."""
        if self._consumer.acks and self._connection.connected:
            self._connection.publish(batch.ack_subject.decode(), b"+ACK")

    @property
    def _full(self) -> bool:
        return len(self._taken) >= BATCH_MESSAGES or self._bytes >= BATCH_BYTES or self._lost is not None

    async def _wait(self, timeout_s: float) -> bool:
        """Returns after `timeout_s`, or sooner when there is something to look at; False when `rouse` said so."""
        self._roused = False
        if self._lost is None:
            self._wake = self._loop.create_future()
            handle = self._loop.call_later(timeout_s, self._look)
            try:
                await self._wake
            finally:
                self._wake = None
                handle.cancel()
        return not self._roused

    def _look(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def rouse(self) -> None:
        """Lets a `next` under way come back at once."""
        self._roused = True
        self._look()

    def _cut(self, messages: int) -> list[Taken]:
        """Up to `messages` of what was taken, bounded in bytes."""
        if self._bytes <= BATCH_BYTES and len(self._taken) <= messages:
            taken, self._taken, self._bytes = self._taken, [], 0
            return taken
        size = count = 0
        for _, _, _, payload in self._taken[:messages]:
            if count and size + len(payload) > BATCH_BYTES:
                break
            size += len(payload)
            count += 1
        taken, self._taken = self._taken[:count], self._taken[count:]
        self._bytes -= size
        return taken

    def _batch(self, taken: list[Taken]) -> Batch | None:
        entries: list[Entry] = []
        decode = self._decode
        last, final = self._last, None
        for message in taken:
            address, ack_subject, _, payload = message
            sequence = ack_sequence(ack_subject)
            if sequence <= last:
                continue  # redelivered
            if sequence != last + 1:
                self._lost = f"the consumer jumped from {last} to {sequence}"
                break
            last, final = sequence, message
            subject = address.decode()
            key = parse_state_subject(subject)
            if is_projected(key):
                try:
                    entries.append(Entry(sequence, key, decode(payload, subject)))
                except NoCommit as error:
                    _pass_over(sequence, error)
        if final is None:
            if self._lost is not None:
                raise ReaderLost(self._lost)
            return None
        count, self._last = last - self._last, last
        _, ack_subject, block, _ = final
        return Batch(entries, Mark(last, commit_id_of(block), ack_time(ack_subject)), count, ack_subject)

    def _pull(self) -> None:
        """Asks for the next messages unless enough lie here; one request at a time.

        It ends when the server has delivered what it has. While nothing lies here it waits for the first message.
        """
        if self._full or not self._connection.connected:
            self._missing = 0
            return
        self._number += 1
        self._missing = BATCH_MESSAGES - len(self._taken)
        self._more = False
        request = {"batch": self._missing, "max_bytes": BATCH_BYTES, "no_wait": True}
        if not self._taken:
            request |= {"expires": int(EXPIRES_S * 1e9), "idle_heartbeat": int(HEARTBEAT_S * 1e9)}
        reply = f"{self._inbox}.{self._number}".encode()
        self._connection.send(publish_frame(self._next, reply, msgspec.json.encode(request)))
        self._heard = self._loop.time()

    def _receive(self, subject: bytes, reply: bytes, block: bytes | None, payload: bytes) -> None:
        self._heard = self._loop.time()
        if reply:
            self._taken.append((subject, reply, block, payload))
            self._received += 1
            self._bytes += len(payload)
            self._missing -= 1
            if self._missing == 0:
                self._ended(more=True)
            return
        status = Reply(payload, block).status
        if status == 100:
            self._compare(block or b"")
            return
        if not subject.endswith(b".%d" % self._number):
            return
        text = (block or b"").decode("utf-8", "replace")
        if status in _ENDED and "Consumer" not in text:
            self._ended(more="MaxBytes" in text)
        else:
            self._lose(f"the consumer is gone: {' '.join(text.split())}")

    def _ended(self, *, more: bool) -> None:
        """The request has ended; `more`: not because the server has nothing else."""
        self._missing, self._more = 0, more
        self._look()

    def _compare(self, heartbeat: bytes) -> None:
        """A heartbeat says how far the consumer has delivered; what is not here went to somebody else."""
        found = _DELIVERED.search(heartbeat)
        if found is not None and int(found[1]) > self._received:
            self._lose(f"the consumer has delivered {int(found[1])}, but only {self._received} came here")

    def _on_connection(self, connected: bool) -> None:
        if not connected:
            self._lose("the connection to NATS was lost")

    def _lose(self, reason: str) -> None:
        self._lost = self._lost or reason
        self._look()


def ack_sequence(ack_subject: bytes) -> int:
    """The stream sequence in an ack subject, of either version of the protocol."""
    tokens = ack_subject.split(b".")
    return int(tokens[5] if len(tokens) == 9 else tokens[7])


def ack_time(ack_subject: bytes) -> int:
    """When the server stored the message, in ms since the epoch, from an ack subject of either version."""
    tokens = ack_subject.split(b".")
    return int(tokens[7] if len(tokens) == 9 else tokens[9]) // 1_000_000


def commit_id_of(block: bytes | None) -> str:
    """The commit id in a header block; empty when it has none."""
    found = _COMMIT_ID.search(block) if block is not None else None
    return found[1].decode("ascii", "replace").strip() if found is not None else ""


def _pass_over(sequence: int, error: NoCommit) -> None:
    """What is no commit can never be read, by no version of this program: its run stands still, and all others go on."""
    extra = {"action": "projection_passes_over", "sequence": sequence, "subject": error.subject, "error": str(error)}
    log.error("passed over at %s, its run stands still: %s", sequence, error, extra=extra)
