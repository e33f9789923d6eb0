"""The machine's clock, as the port Clock."""

import time


class SystemClock:
    """Milliseconds since the epoch, UTC."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000
