"""Leases kept alive in memory."""

from collections.abc import Callable

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.engine.ports import Clock


class MemoryHeartbeat:
    """The port Heartbeat: renews what is held whenever the test's clock moves, or when `beat` is called."""

    def __init__(self, queue: MemoryCommandQueue, clock: Clock, on_lost: Callable[[], None]) -> None:
        self._queue = queue
        self._clock = clock
        self._on_lost = on_lost
        self._held: dict[str, int] = {}
        if isinstance(clock, ManualClock):
            clock.watch(self.beat)

    def hold(self, ack_subject: str, until_ms: int) -> None:
        """See Heartbeat."""
        self._held[ack_subject] = until_ms

    def drop(self, ack_subject: str) -> None:
        """See Heartbeat."""
        self._held.pop(ack_subject, None)

    def is_broken(self, ack_subject: str) -> bool:
        """See Heartbeat."""
        return ack_subject not in self._held

    @property
    def held(self) -> int:
        """How many leases are held."""
        return len(self._held)

    def beat(self) -> None:
        """Renews all leases that are held and not past their end."""
        now = self._clock.now()
        self._held = {subject: until for subject, until in self._held.items() if until > now}
        for subject in self._held:
            consumer, sequence, _, _ = subject.rsplit(".", 3)
            self._queue.lease(consumer, int(sequence))

    def lose(self) -> None:
        """All claims are lost, as after a pause longer than ack_wait."""
        self._held.clear()
        self._on_lost()
