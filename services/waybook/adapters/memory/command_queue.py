"""COMMANDS in memory: a work queue whose deliveries are leases on the given clock."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.faults import Faults
from waybook.engine.ports import (
    Clock,
    ConsumerSpec,
    Outgoing,
    PortMisconfigured,
    StreamFull,
)
from waybook.events.engine import Claim

DUPLICATE_WINDOW_MS = 120_000


class _Stored:
    __slots__ = ("command", "headers", "payload", "stored_at", "subject")

    def __init__(self, subject: str, payload: bytes, command: str, headers: dict[str, str], stored_at: int) -> None:
        self.subject = subject
        self.payload = payload
        self.command = command
        self.headers = headers
        self.stored_at = stored_at


class _Consumer:
    def __init__(self, spec: ConsumerSpec, created: int) -> None:
        self.spec = spec
        self.created = created
        self.lease_ends: dict[int, int] = {}  # command sequence -> ms
        self.delivered: dict[int, int] = {}
        self.pulls = 0


class MemoryDelivery:
    """The port Delivery. As on JetStream, the verbs of an old delivery are honoured."""

    def __init__(self, queue: "MemoryCommandQueue", consumer: str, stored: _Stored, claim: Claim) -> None:
        self._queue = queue
        self._consumer = consumer
        self._stored = stored
        self.subject = stored.subject
        self.payload = stored.payload
        self.claim = claim
        self.received_at = stored.stored_at
        self.ack_subject = f"{consumer}.{claim.sequence}.{claim.consumer_created}.{claim.delivery}"

    @property
    def headers(self) -> Mapping[str, str]:
        """The command's headers."""
        return self._stored.headers

    async def ack(self) -> None:
        """The command is done."""
        self._queue.remove(self.claim.sequence)

    async def nak(self, delay_s: float = 0.0) -> None:
        """Gives the command back."""
        self._queue.lease(self._consumer, self.claim.sequence, int(delay_s * 1000))

    async def term(self, reason: str) -> None:
        """Drops the command for good."""
        self._queue.terminated[self.claim.sequence] = reason
        self._queue.remove(self.claim.sequence)

    async def in_progress(self) -> None:
        """Renews the lease."""
        self._queue.lease(self._consumer, self.claim.sequence)


class MemoryCommandQueue:
    """The port CommandQueue. `most` is how many commands wait at most, None: no limit.

    `chance` shuffles what is delivered, as redeliveries and several servers do; None: in the order of storing.
    """

    def __init__(
        self, clock: Clock | None = None, *, ack_wait_s: float = 60.0, most: int | None = None,
        faults: Faults | None = None, chance: Random | None = None,
    ) -> None:  # fmt: skip
        self.faults = faults or Faults()
        self._chance = chance
        self.ack_wait_s = ack_wait_s
        self.terminated: dict[int, str] = {}
        self._clock = clock or ManualClock()
        self._most = most
        self._stored: dict[int, _Stored] = {}
        self._sequence = 0
        self._made = 0
        self._seen: dict[str, int] = {}  # command id -> stored at
        self._consumers: dict[str, _Consumer] = {}
        self._changed = asyncio.Event()
        if isinstance(self._clock, ManualClock):
            self._clock.watch(self._wake)

    @property
    def waiting(self) -> dict[int, str]:
        """Subjects of the commands that are not acknowledged, by sequence."""
        return {sequence: stored.subject for sequence, stored in self._stored.items()}

    async def ensure_consumers(self, specs: Sequence[ConsumerSpec], *, recreate: bool = False) -> None:
        """See CommandQueue."""
        self.faults.check()
        for spec in specs:
            if recreate or spec.name not in self._consumers:
                self._made += 1
                self._consumers[spec.name] = _Consumer(spec, self._clock.now() * 1_000_000 + self._made)
        self._wake()

    async def publish(
        self, subject: str, payload: bytes, *, command: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        """See CommandQueue."""
        self.faults.check()
        now = self._clock.now()
        if self._seen.get(command, now - DUPLICATE_WINDOW_MS) > now - DUPLICATE_WINDOW_MS:
            return False
        if self._most is not None and len(self._stored) >= self._most:
            raise StreamFull(f"COMMANDS holds {self._most} commands, that is its limit")
        self._sequence += 1
        self._seen[command] = now
        kept = {**(headers or {}), "Nats-Msg-Id": command}
        self._stored[self._sequence] = _Stored(subject, payload, command, kept, now)
        self._wake()
        return True

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[bool]:
        """See CommandQueue."""
        return [await self.publish(m.subject, m.payload, command=m.command, headers=m.headers) for m in messages]

    async def pull(self, consumer: str, batch: int, timeout_s: float) -> Sequence[MemoryDelivery]:
        """See CommandQueue. `timeout_s` is real time, leases follow the clock."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            self.faults.check()
            if consumer not in self._consumers:
                raise PortMisconfigured(f"COMMANDS has no consumer {consumer}")
            taken = self._take(self._consumers[consumer], batch)
            left = deadline - asyncio.get_running_loop().time()
            if taken or left <= 0:
                return taken
            pulled = self._consumers[consumer]
            pulled.pulls += 1
            try:
                await self._wait(min(left, self._next_lapse_s(pulled)))
            finally:
                pulled.pulls -= 1

    async def holds(self, sequence: int) -> bool:
        """See CommandQueue."""
        self.faults.check()
        return sequence in self._stored

    async def is_taken(self, consumer: str) -> bool:
        """See CommandQueue."""
        self.faults.check()
        made, now = self._consumers.get(consumer), self._clock.now()
        return made is not None and (made.pulls > 0 or any(end > now for end in made.lease_ends.values()))

    def forget_ids(self) -> None:
        """The window in which a second command of one id is taken for the first is over."""
        self._seen.clear()

    def remove(self, sequence: int) -> None:
        """A command was acknowledged or dropped."""
        self._stored.pop(sequence, None)
        for consumer in self._consumers.values():
            consumer.lease_ends.pop(sequence, None)

    def lease(self, consumer: str, sequence: int, ms: int | None = None) -> None:
        """The lease of a command now ends in `ms`, by default in an ack_wait."""
        made = self._consumers.get(consumer)
        if made is not None and sequence in made.lease_ends:
            made.lease_ends[sequence] = self._clock.now() + (int(self.ack_wait_s * 1000) if ms is None else ms)
            self._wake()

    def _take(self, consumer: _Consumer, batch: int) -> list[MemoryDelivery]:
        now = self._clock.now()
        taken: list[MemoryDelivery] = []
        waiting = list(self._stored.items())
        if self._chance is not None:
            self._chance.shuffle(waiting)
        for sequence, stored in waiting:
            if len(taken) >= batch:
                break
            if not matches(consumer.spec.filter, stored.subject) or consumer.lease_ends.get(sequence, 0) > now:
                continue
            count = consumer.delivered.get(sequence, 0) + 1
            consumer.delivered[sequence] = count
            consumer.lease_ends[sequence] = now + int(self.ack_wait_s * 1000)
            claim = Claim(sequence, consumer.created, count)
            taken.append(MemoryDelivery(self, consumer.spec.name, stored, claim))
        return taken

    def _next_lapse_s(self, consumer: _Consumer) -> float:
        ends = consumer.lease_ends.values()
        return max(0.001, (min(ends) - self._clock.now()) / 1000) if ends else 3600.0

    def _wake(self) -> None:
        """Everybody who waits looks again. Each change has an event of its own, so that nobody clears another's."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):  # unlike wait_for it never takes a cancellation for a wake-up
                await self._changed.wait()
        except TimeoutError:
            return


def matches(pattern: str, subject: str) -> bool:
    """Whether a subject matches a filter with the wildcards `*` (one token) and `>` (the rest)."""
    wanted, tokens = pattern.split("."), subject.split(".")
    for i, want in enumerate(wanted):
        if want == ">":
            return len(tokens) > i
        if i >= len(tokens) or want not in ("*", tokens[i]):
            return False
    return len(wanted) == len(tokens)
