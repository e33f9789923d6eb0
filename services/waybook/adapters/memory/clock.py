"""A clock that stands still until it is moved."""

from collections.abc import Callable


class ManualClock:
    """The port Clock for tests. Times in milliseconds since the epoch, UTC."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self._now_ms = now_ms
        self._watchers: list[Callable[[], None]] = []

    def now(self) -> int:
        """The time that was set."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Moves the time on; leases that lapse by it are delivered again to who waits."""
        self._now_ms += ms
        for watcher in self._watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Calls `watcher` after each move."""
        self._watchers.append(watcher)
