"""What makes a worker killable: a fuse between it and every port. A blown fuse lets nothing through any more.

A process that dies takes its memory along and says nothing further: from outside it is the same as a process whose
calls all hang from that moment on. No code of the product is changed for it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from tests.conformance.pipeline.outside import Traffic

from waybook.engine.ports import (
    Clock,
    CommandQueue,
    ConsumerSpec,
    Delivery,
    Draft,
    Heartbeat,
    Notes,
    Objects,
    Outgoing,
    Record,
    Replies,
    StateLog,
)
from waybook.events.engine import Claim
from waybook.events.subjects import RunKey
from waybook.services.walker.walker import WalkerPorts

T = TypeVar("T")


class Fuse:
    """Between one worker and the outside. `on_blow` is told once, from inside the call during which it blows."""

    def __init__(self, on_blow: Callable[[], None]) -> None:
        self.blown = False
        self.stopped = asyncio.Event()
        self.stopped.set()
        self._on_blow = on_blow

    def blow(self) -> None:
        if not self.blown:
            self.blown = True
            self._on_blow()

    async def through(self, call: Awaitable[T]) -> T:
        """The answer of `call`; it is neither made nor heard when the worker is dead, and waits while it is stopped."""
        await self.check(call)
        answer = await call
        await self.check()
        return answer

    async def check(self, unused: Awaitable[T] | None = None) -> None:
        """Returns while the worker lives; never once it is dead."""
        try:
            await self.stopped.wait()
            if self.blown:
                await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            close = getattr(unused, "close", None)
            if close is not None:
                close()
            raise


class FusedLog:
    """STATE behind a fuse; `Traffic` may hold an append, or blow the fuse before or after it (crash points)."""

    def __init__(self, inner: StateLog, fuse: Fuse, traffic: Traffic) -> None:
        self._inner = inner
        self._fuse = fuse
        self._traffic = traffic

    @property
    def stream(self) -> str:
        return self._inner.stream

    async def fitting(self, subject: str, payload: bytes) -> bytes:
        return await self._inner.fitting(subject, payload)

    async def append(self, draft: Draft, *, tries: int | None = None) -> int:
        await self._fuse.check()
        crash = await self._traffic.before_append(draft)
        if crash is not None and not crash.stored:
            self._fuse.blow()
        await self._fuse.check()
        sequence = await self._inner.append(draft, tries=tries)
        self._traffic.appended(draft)
        if crash is not None:
            self._fuse.blow()
        await self._fuse.check()
        return sequence

    async def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        await self._fuse.check()
        async for record in self._inner.history(subject, after):
            await self._fuse.check()
            yield record

    async def tail(self, subject: str) -> Record | None:
        return await self._fuse.through(self._inner.tail(subject))


class FusedDelivery:
    """A delivery behind its worker's fuse; what becomes of it is noted."""

    def __init__(self, inner: Delivery, fuse: Fuse, traffic: Traffic) -> None:
        self.inner = inner
        self.subject = inner.subject
        self.payload = inner.payload
        self.claim: Claim = inner.claim
        self.received_at = traffic.received_at(inner)
        self.ack_subject = inner.ack_subject
        self._fuse = fuse
        self._traffic = traffic

    @property
    def headers(self) -> Mapping[str, str]:
        return self.inner.headers

    async def ack(self) -> None:
        await self._fuse.check()
        if self._traffic.ack_is_lost(self.claim):
            return
        await self._fuse.through(self.inner.ack())
        self._traffic.settled(self.claim)

    async def nak(self, delay_s: float = 0.0) -> None:
        await self._fuse.through(self.inner.nak(delay_s))
        self._traffic.given_back(self.claim, delay_s)

    async def term(self, reason: str) -> None:
        await self._fuse.through(self.inner.term(reason))
        self._traffic.settled(self.claim)

    async def in_progress(self) -> None:
        await self._fuse.through(self.inner.in_progress())


class FusedQueue:
    """COMMANDS behind a fuse."""

    def __init__(self, inner: CommandQueue, fuse: Fuse, traffic: Traffic, worker: str) -> None:
        self._inner = inner
        self._fuse = fuse
        self._traffic = traffic
        self._worker = worker

    async def publish(
        self, subject: str, payload: bytes, *, command: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        return await self._fuse.through(self._traffic.publish(self._inner, subject, payload, command, headers))

    async def publish_many(self, messages: Sequence[Outgoing]) -> Sequence[bool]:
        return [await self.publish(m.subject, m.payload, command=m.command, headers=m.headers) for m in messages]

    async def ensure_consumers(self, specs: Sequence[ConsumerSpec], *, recreate: bool = False) -> None:
        await self._fuse.through(self._inner.ensure_consumers(specs, recreate=recreate))

    async def pull(self, consumer: str, batch: int, timeout_s: float) -> Sequence[Delivery]:
        await self._fuse.check()
        await self._traffic.until_heard(self._worker)
        with self._traffic.pulling(self._worker):
            taken = await self._inner.pull(consumer, batch, timeout_s)
        if self._fuse.blown or not self._fuse.stopped.is_set():  # it was woken after its end: nobody took anything
            for delivery in taken:
                await delivery.nak()
            await self._fuse.check()
            return []
        pulled = [d for d in taken if not self._traffic.intercepted(d)]
        deliveries = [FusedDelivery(d, self._fuse, self._traffic) for d in pulled]
        for delivery in deliveries:
            if self._traffic.delivered(delivery, self._worker):
                await delivery.inner.nak()
        await self._fuse.check()
        return deliveries

    async def holds(self, sequence: int) -> bool:
        return await self._fuse.through(self._inner.holds(sequence))

    async def is_taken(self, consumer: str) -> bool:
        return await self._fuse.through(self._inner.is_taken(consumer))


class FusedHeartbeat:
    """Heartbeats end with the worker, or while it is stopped."""

    def __init__(self, inner: Heartbeat, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse
        self._held: set[str] = set()

    def hold(self, ack_subject: str, until_ms: int) -> None:
        if not self._fuse.blown:
            self._held.add(ack_subject)
            self._inner.hold(ack_subject, until_ms)

    def drop(self, ack_subject: str) -> None:
        self._held.discard(ack_subject)
        self._inner.drop(ack_subject)

    def is_broken(self, ack_subject: str) -> bool:
        return self._inner.is_broken(ack_subject)

    def drop_all(self) -> None:
        """The worker is dead or stopped: nothing speaks for its deliveries any more."""
        for ack_subject in self._held:
            self._inner.drop(ack_subject)
        self._held.clear()


class FusedReplies:
    """Answers are heard by who waits for them in the case."""

    def __init__(self, inner: Replies, fuse: Fuse, traffic: Traffic) -> None:
        self._inner = inner
        self._fuse = fuse
        self._traffic = traffic

    async def answer(self, subject: str, payload: bytes) -> None:
        await self._fuse.through(self._inner.answer(subject, payload))
        self._traffic.answered(subject, payload)


class FusedNotes:
    """AUDITIN, TRACE and DEAD behind a fuse."""

    def __init__(self, inner: Notes, fuse: Fuse, traffic: Traffic) -> None:
        self._inner = inner
        self._fuse = fuse
        self._traffic = traffic

    async def audit(self, tenant: str, record: str, payload: bytes) -> None:
        await self._fuse.through(self._inner.audit(tenant, record, payload))
        self._traffic.audits.setdefault(record, payload)

    async def trace(self, tenant: str, kind: str, payload: bytes) -> None:
        await self._fuse.through(self._inner.trace(tenant, kind, payload))
        self._traffic.traces.append((kind, payload))

    async def bury(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> None:
        await self._fuse.through(self._inner.bury(subject, payload, headers))
        self._traffic.buried.append((subject, payload))

    async def buried(self, key: RunKey) -> Sequence[Record]:
        return await self._fuse.through(self._inner.buried(key))


class FusedObjects:
    """The bucket behind a fuse."""

    def __init__(self, inner: Objects, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    async def put(self, name: str, data: bytes) -> None:
        await self._fuse.through(self._inner.put(name, data))

    async def get(self, name: str) -> bytes:
        return await self._fuse.through(self._inner.get(name))


class OffsetClock:
    """A worker's own clock: that of the case and an offset (`clock_offset_s`)."""

    def __init__(self, inner: Clock, offset_ms: int) -> None:
        self._inner = inner
        self._offset_ms = offset_ms

    def now(self) -> int:
        return self._inner.now() + self._offset_ms


def fused(ports: WalkerPorts, fuse: Fuse, traffic: Traffic, worker: str, offset_ms: int = 0) -> WalkerPorts:
    """The ports as one worker sees them."""
    return WalkerPorts(
        state=FusedLog(ports.state, fuse, traffic),
        commands=FusedQueue(ports.commands, fuse, traffic, worker),
        replies=FusedReplies(ports.replies, fuse, traffic),
        notes=FusedNotes(ports.notes, fuse, traffic),
        objects=FusedObjects(ports.objects, fuse),
        heartbeat=FusedHeartbeat(ports.heartbeat, fuse),
        clock=OffsetClock(ports.clock, offset_ms),
    )
