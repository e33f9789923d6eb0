"""Pulling deliveries of one durable consumer."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from waybook.adapters.nats.connection import Connection, Reply
from waybook.adapters.nats.frames import publish_frame
from waybook.engine.ports import PortMisconfigured, PortUnavailable

HEARTBEAT_S = 2.0
OTHERS_WAIT_S = 0.01  # the pulls of other processes are about to take what is pending

_LOST = -1
_SILENT = -2
_PASSING = -3  # the server stops, another leader took over, or more pulls wait than a consumer takes
_FILLED = 0
_OTHERS_WAIT = 1


class Raw(NamedTuple):
    """A delivery as it came; `at` is the loop's time of its arrival."""

    subject: bytes
    ack_subject: bytes
    headers: bytes | None
    payload: bytes
    at: float


class Puller:
    """One-shot pulls: all that is there, at most a batch, else the first that comes before the time is up.

    A pull whose caller was cancelled may still be served; those deliveries are kept and handed out by the next
    pull, unless they are older than half an ack_wait, when their lease may be over before anybody begins.
    """

    def __init__(self, connection: Connection, stream: str, consumer: str, ack_wait_s: float) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}".encode()
        self._name = consumer
        self._fresh_s = ack_wait_s / 2
        self._inbox = connection.inbox()
        self._taken: deque[Raw] = deque()
        self._subscribed = False
        self._number = 0
        self._missing = 0
        self._end: asyncio.Future[int] | None = None
        self._heard = 0.0
        self._silence_s = 0.0
        self.deleted = False  # the consumer, since `forget`
        connection.watch(self._on_connection)

    async def pull(self, batch: int, timeout_s: float) -> list[Raw]:
        """One at a time. Raises PortUnavailable when the server falls silent or away, PortMisconfigured."""
        if not self._subscribed:
            self._connection.subscribe(self._inbox + ".*", self._receive)
            self._subscribed = True
        deadline = self._loop.time() + timeout_s
        ready = self._fresh(batch)
        while not ready and not self.deleted:
            left = deadline - self._loop.time()
            if left <= 0.001:
                break
            if await self._once(batch, left) == _OTHERS_WAIT:
                await asyncio.sleep(min(OTHERS_WAIT_S, left))
            ready = self._fresh(batch)
        return ready

    def leftovers(self) -> list[Raw]:
        """What was taken and not handed out, and is still ours; it is not handed out any more."""
        return self._fresh(len(self._taken))

    def put_back(self, raws: Sequence[Raw]) -> None:
        """What was handed out and is not taken after all; the next pull hands it out first."""
        self._taken.extendleft(reversed(raws))

    def forget(self) -> None:
        """Drops what was taken from a consumer that is gone."""
        self._taken.clear()
        self.deleted = False

    async def _once(self, batch: int, timeout_s: float) -> int:
        self._number += 1
        self._missing = batch
        heartbeat_s = min(HEARTBEAT_S, timeout_s / 2.5)
        body = {
            "batch": batch,
            "no_wait": True,  # with `expires`: one shot, see the class
            "expires": int(timeout_s * 1e9),
            "idle_heartbeat": int(heartbeat_s * 1e9),
        }
        reply = f"{self._inbox}.{self._number}".encode()
        self._connection.send(publish_frame(self._next, reply, msgspec.json.encode(body)))
        self._heard = self._loop.time()
        self._end = self._loop.create_future()
        self._silence_s = 2.5 * heartbeat_s + 0.2
        watchdog = self._loop.call_later(self._silence_s, self._watch, self._end)
        try:
            end = await self._end
        finally:
            self._end = None
            watchdog.cancel()
        match end:
            case _ if end == _LOST:
                raise PortUnavailable("the connection to NATS was lost")
            case _ if end == _PASSING:
                raise PortUnavailable(f"consumer {self._name} cannot be pulled just now")
            case _ if end == _SILENT and not self._taken:
                raise PortUnavailable(f"consumer {self._name} does not answer a pull")
            case 400 | 409 if not self.deleted:
                raise PortMisconfigured(f"consumer {self._name} refuses to be pulled ({end})")
        return end

    def _watch(self, end: asyncio.Future[int]) -> None:
        """A pull that the server lost (a restart, another leader) is seen by its missing heartbeats."""
        if end is not self._end or end.done():
            return
        left = self._heard + self._silence_s - self._loop.time()
        if left <= 0:
            self._finish(_SILENT)
        else:
            self._loop.call_later(left, self._watch, end)

    def _fresh(self, batch: int) -> list[Raw]:
        oldest = self._loop.time() - self._fresh_s
        ready: list[Raw] = []
        while self._taken and len(ready) < batch:
            raw = self._taken.popleft()
            if raw.at >= oldest:
                ready.append(raw)
        return ready

    def _receive(self, subject: bytes, reply: bytes, headers: bytes | None, payload: bytes) -> None:
        self._heard = self._loop.time()
        if reply:
            self._taken.append(Raw(subject, reply, headers, payload, self._heard))
            self._missing -= 1
            if self._missing <= 0:
                self._finish(_FILLED)
            return
        status = Reply(payload, headers).status
        text = headers or b""
        if b"Consumer Deleted" in text or status == 503:
            self.deleted = True
        if status != 100 and subject.endswith(b".%d" % self._number):
            self._finish(_meaning(status, text))

    def _finish(self, end: int) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(end)

    def _on_connection(self, connected: bool) -> None:
        if not connected:
            self._finish(_LOST)


def _meaning(status: int, text: bytes) -> int:
    if b"Requests Pending" in text:
        return _OTHERS_WAIT
    if status == 409 and any(word in text for word in (b"Server Shutdown", b"Leadership Change", b"MaxWaiting")):
        return _PASSING
    return status
