"""How many restarts may begin: a token bucket, so that ten thousand runs that failed together do not start together."""


class TokenBucket:
    """`rate` tokens a second, at most `burst` at once. Times in seconds of any clock that never goes back."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at = now

    def available(self, now: float) -> int:
        """Whole tokens there are."""
        self._tokens = min(float(self._burst), self._tokens + max(0.0, now - self._at) * self._rate)
        self._at = max(self._at, now)
        return int(self._tokens)

    def take(self, count: int) -> None:
        """Uses tokens up; more than there are delay the ones to come."""
        self._tokens -= count

    def wait_s(self, now: float) -> float:
        """Seconds until there is a whole token."""
        return 0.0 if self.available(now) else (1.0 - self._tokens) / self._rate
