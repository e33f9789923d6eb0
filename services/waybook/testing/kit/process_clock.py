"""The clock of the machines that the processes run on: that of the server, until it jumps."""

from waybook.adapters.memory.clock import ManualClock


class ProcessClock:
    """The port Clock. It follows the server's, and goes wrong by a jump for a time."""

    def __init__(self, server: ManualClock) -> None:
        self._server = server
        self._off_ms = 0
        self._until = 0

    def now(self) -> int:
        """What the processes take for the time."""
        now = self._server.now()
        return now + self._off_ms if now < self._until else now

    def jump(self, ms: int, right_after_ms: int) -> None:
        """It is wrong by `ms` from now on, for `right_after_ms` by the server's clock."""
        self._off_ms = ms
        self._until = self._server.now() + right_after_ms
