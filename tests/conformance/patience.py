"""How long a world may move before it counts as one that never comes to rest."""

import asyncio

LOOK_S = 0.1
"""What one look counts for at most, in seconds."""


class NoRest(Exception):
    """What was asked for does not come to an end; the message says what is still open."""


class Patience:
    """`seconds` of looking. A pause between two looks counts as LOOK_S at most, however long it was.

    A process that others keep from running, or that is stopped, cannot come to rest meanwhile: that time is the
    machine's, and no difference of the case.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._looked_at = self._loop.time()
        self._spent = 0.0
        self._looks = 0
        self._longest = 0.0

    def look(self) -> bool:
        """Counts a look; whether the patience is over."""
        now = self._loop.time()
        pause, self._looked_at = now - self._looked_at, now
        self._looks += 1
        self._longest = max(self._longest, pause)
        self._spent += min(pause, LOOK_S)
        return self._spent > self._seconds

    def __str__(self) -> str:
        return f"{self._looks} looks in {self._spent:.1f} s, the longest pause between them {self._longest:.1f} s"
