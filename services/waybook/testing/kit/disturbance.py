"""Deliveries that come twice, late and out of order; clocks that jump."""

import random
from collections.abc import Mapping, Sequence

import msgspec

from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.engine.ports import ConsumerSpec, Delivery, Outgoing


class Disturbance(msgspec.Struct, frozen=True):
    """What goes wrong beside a process's death. Shares of deliveries are 0.0 to 1.0, drawn with `seed`.

    `twice`: a command is published again under the same command id, after the server forgot the first; whoever gave
    it, a person or a process. `late`: a delivery is left for a later pull. `shuffled`: what one pull brings is mixed.
    `jump_ms`: at the place the clocks of all processes jump by so much, forward or (negative) back; that of the server
    goes on, and after `right_after_ms` by it they are right again. `dies` False: nobody dies there.
    """

    seed: int = 0
    twice: float = 0.0
    late: float = 0.0
    shuffled: bool = False
    jump_ms: int = 0
    right_after_ms: int = 2 * 3_600_000
    dies: bool = True

    def __str__(self) -> str:
        said = [f"seed {self.seed}", f"twice {self.twice:g}", f"late {self.late:g}"]
        said.append("shuffled" if self.shuffled else "in order")
        if self.jump_ms:
            said.append(f"clocks jump by {self.jump_ms} ms")
        if not self.dies:
            said.append("nobody dies")
        return ", ".join(said)


CALM = Disturbance()


class DisturbedQueue:
    """A CommandQueue whose pulls are disturbed. What is late lapses with its lease, as a lost delivery would."""

    def __init__(self, inner: MemoryCommandQueue, disturbance: Disturbance) -> None:
        self._inner = inner
        self._how = disturbance
        self._random = random.Random(disturbance.seed)

    async def ensure_consumers(self, specs: Sequence[ConsumerSpec], *, recreate: bool = False) -> None:
        """See CommandQueue."""
        await self._inner.ensure_consumers(specs, recreate=recreate)

    async def publish(
        self, subject: str, payload: bytes, *, command: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        """See CommandQueue."""
        stored = await self._inner.publish(subject, payload, command=command, headers=headers)
        if self._random.random() < self._how.twice:
            self._inner.forget_ids()
            await self._inner.publish(subject, payload, command=command, headers=headers)
        return stored

    async def publish_many(self, messages: Sequence[Outgoing]) -> Sequence[bool]:
        """See CommandQueue."""
        return [await self.publish(m.subject, m.payload, command=m.command, headers=m.headers) for m in messages]

    async def pull(self, consumer: str, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """See CommandQueue."""
        pulled = list(await self._inner.pull(consumer, batch, timeout_s))
        if self._how.shuffled:
            self._random.shuffle(pulled)
        kept: list[Delivery] = []
        for delivery in pulled:
            if self._random.random() < self._how.late:
                continue
            kept.append(delivery)
        return kept

    async def holds(self, sequence: int) -> bool:
        """See CommandQueue."""
        return await self._inner.holds(sequence)

    async def is_taken(self, consumer: str) -> bool:
        """See CommandQueue."""
        return await self._inner.is_taken(consumer)
