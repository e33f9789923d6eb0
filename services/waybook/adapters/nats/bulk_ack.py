"""Acknowledging in bulk, for the one process that takes all deliveries of a work queue's consumer.

With sync always each acknowledgement of a work queue costs the server one fsync, under the lock of the consumer. A purge
of all that is done costs one for many. Only who gets every delivery can tell what that is.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from waybook.adapters.nats.connection import Connection, Lost, Reply
from waybook.adapters.nats.frames import publish_frame
from waybook.engine.ports import PortUnavailable

log = logging.getLogger(__name__)

ACK = b"+ACK"
MANY = 48
"""So many are purged at once, without waiting for more."""

WORTH = 8
"""A purge costs the server about as much as so many acknowledgements."""

WAIT_S = 0.05
MOST_WAIT_S = 0.5
"""How long one that is done may wait for those before it; never longer than an eighth of ack_wait."""


class Floor:
    """Up to which sequence of the stream all that a consumer delivered is done.

    A consumer made anew numbers its deliveries from 1 and delivers in the order of the stream. Who has seen all numbers
    so far has seen every message up to the last one; `whole` tells whether that is so. A gap is never filled again:
    what was lost comes again under another number.
    """

    __slots__ = ("_last", "_open", "_sequence", "whole")

    def __init__(self) -> None:
        self.whole = True
        self._last = 0
        self._sequence = 0
        self._open: set[int] = set()

    def delivered(self, number: int, sequence: int) -> None:
        """The delivery `number` of the consumer brought the message at `sequence`, maybe once more."""
        if number != self._last + 1:
            self.whole = False
        self._last = number
        self._sequence = max(self._sequence, sequence)
        self._open.add(sequence)

    def goes_on(self, numbers: Sequence[int]) -> bool:
        """Whether deliveries with these numbers would follow those before them without a gap."""
        return self.whole and list(numbers) == list(range(self._last + 1, self._last + 1 + len(numbers)))

    def done(self, sequence: int) -> None:
        """The message at `sequence` is never needed again."""
        self._open.discard(sequence)

    @property
    def sequence(self) -> int:
        """Everything up to here is done; 0 when that is nothing."""
        return min(self._open) - 1 if self._open else self._sequence


class _Done(NamedTuple):
    sequence: int
    ack_subject: str
    at: float


class _Purged(msgspec.Struct, frozen=True):
    success: bool = False


class BulkAcks:
    """Acknowledges what one consumer delivered: by a purge of its subjects, else one by one.

    One by one it is as soon as anything was missed (a gap, a lost connection), and for those that wait for an earlier
    one for longer than `MOST_WAIT_S`. A message that is not done is never purged.
    """

    def __init__(self, connection: Connection, stream: str, subjects: str, ack_wait_s: float) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._purge = f"$JS.API.STREAM.PURGE.{stream}"
        self._subjects = subjects
        self._most_wait_s = min(MOST_WAIT_S, ack_wait_s / 8)
        self._floor = Floor()
        self._done: list[_Done] = []
        self._purging = False
        self._timer: asyncio.TimerHandle | None = None
        connection.watch(self._on_connection)

    def goes_on(self, numbers: Sequence[int]) -> bool:
        """See Floor.goes_on. Deliveries that do are of this consumer: one made anew begins at 1 again."""
        return self._floor.goes_on(numbers)

    def delivered(self, number: int, sequence: int) -> None:
        """See Floor.delivered."""
        self._floor.delivered(number, sequence)

    def lose(self) -> None:
        """The consumer may not be the one that was made, or not know what it did: one by one from now on."""
        self._floor.whole = False
        self.flush()

    def ack(self, sequence: int, ack_subject: str) -> None:
        """The message is done."""
        self._floor.done(sequence)
        if not self._floor.whole:
            self._say(ack_subject)
            return
        self._done.append(_Done(sequence, ack_subject, self._loop.time()))
        if len(self._done) >= MANY and not self._purging:
            self._go_on()
        elif self._timer is None:
            self._timer = self._loop.call_later(min(WAIT_S, self._most_wait_s), self._on_time)

    def dropped(self, sequence: int) -> None:
        """The server was told to drop the message, by other means than `ack`."""
        self._floor.done(sequence)

    def flush(self) -> None:
        """Acknowledges all that is done, one by one and at once."""
        waiting, self._done = self._done, []
        for one in waiting:
            self._say(one.ack_subject)

    def _on_time(self) -> None:
        self._timer = None
        if not self._purging:
            self._go_on()

    def _go_on(self) -> None:
        """Purges what is worth it, acknowledges what waited too long, and looks again later for the rest."""
        floor = self._floor.sequence
        below = [one for one in self._done if one.sequence <= floor]
        if len(below) >= WORTH:
            self._done = [one for one in self._done if one.sequence > floor]
            self._send_purge(floor, below)
        oldest = self._loop.time() - self._most_wait_s
        late = [one for one in self._done if one.at <= oldest]
        if late:
            self._done = [one for one in self._done if one.at > oldest]
            for one in late:
                self._say(one.ack_subject)
        if self._done and self._timer is None:
            self._timer = self._loop.call_later(min(WAIT_S, self._most_wait_s), self._on_time)

    def _send_purge(self, floor: int, below: list[_Done]) -> None:
        """Purges up to and including `floor`; where that fails, those `below` are acknowledged one by one."""
        self._purging = True

        def on_answer(answer: Reply | Lost) -> None:
            self._purging = False
            if not (isinstance(answer, Reply) and _succeeded(answer)):
                log.info("a purge failed", extra={"action": "bulk_ack_failed", "subjects": self._subjects})
                self._done += below
                self.lose()

        body = msgspec.json.encode({"filter": self._subjects, "seq": floor + 1})
        reply = self._connection.expect(self._purge, on_answer)
        try:
            self._connection.send(publish_frame(self._purge.encode(), reply, body))
        except PortUnavailable as error:
            self._connection.forget(reply)
            on_answer(error)

    def _on_connection(self, connected: bool) -> None:
        if not connected:
            self.lose()

    def _say(self, ack_subject: str) -> None:
        try:
            self._connection.publish(ack_subject, ACK)
        except PortUnavailable:
            return  # it comes again, and is found applied


def _succeeded(answer: Reply) -> bool:
    try:
        return msgspec.json.decode(answer.payload, type=_Purged).success
    except msgspec.MsgspecError:
        return False
