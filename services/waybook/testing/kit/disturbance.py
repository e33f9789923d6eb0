"""Deliveries that come twice, late and out of order."""

import random
from collections.abc import Mapping, Sequence

import msgspec

from waybook.engine.ports import CommandQueue, ConsumerSpec, Delivery, Outgoing


class Disturbance(msgspec.Struct, frozen=True):
    """How deliveries are disturbed; each is a share of them, 0.0 to 1.0, drawn with `seed`.

    `twice`: a command is published again under the same command id, after the server forgot the first.
    `late`: a delivery is left for a later pull. `shuffled`: what one pull brings is mixed.
    """

    seed: int = 0
    twice: float = 0.0
    late: float = 0.0
    shuffled: bool = False

    def __str__(self) -> str:
        return (
            f"seed {self.seed}, twice {self.twice:g}, late {self.late:g}, {'shuffled' if self.shuffled else 'in order'}"
        )


CALM = Disturbance()


class DisturbedQueue:
    """A CommandQueue whose pulls are disturbed. What is late lapses with its lease, as a lost delivery would."""

    def __init__(self, inner: CommandQueue, disturbance: Disturbance) -> None:
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
        return await self._inner.publish(subject, payload, command=command, headers=headers)

    async def publish_many(self, messages: Sequence[Outgoing]) -> Sequence[bool]:
        """See CommandQueue."""
        return await self._inner.publish_many(messages)

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

    def again(self) -> bool:
        """Whether the next command is to be published a second time."""
        return self._random.random() < self._how.twice
