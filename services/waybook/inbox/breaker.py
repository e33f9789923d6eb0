"""The circuit breaker of unattended replies: it opens when too many of them bounce or are called spam. Pure.

It has no state of its own: it is read off the counts in the log, so every process sees the same and nothing is lost.

- **closed**: replies may leave, while of those within the window fewer than the limits came to a bad end, or only so few
  that they say nothing.
- **open**: none leaves for a rest.
- **half-open** after the rest: a few leave on trial, and a person decides on the others. One more bad end opens it anew;
  when enough trials have left and another rest has passed without a bad end it is closed, and counts from there.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from waybook.engine.aggregates.outcomes import SPAN_MS, Counts

BreakerKind = Literal["closed", "open", "half_open"]
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
NAME = "unattended replies"


class BreakerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`bounces` and `complaints`: shares of the replies within `window_hours` from which on it opens; `least`: bad ends
    that it takes at least. `rest_minutes`: how long it stays open. `trials`: replies that leave while it is half-open.
    """

    bounces: float = 0.1
    complaints: float = 0.02
    least: int = 3
    window_hours: float = 24.0
    rest_minutes: float = 60.0
    trials: int = 3

    @property
    def window(self) -> int:
        """Spans within which is counted."""
        return max(1, round(self.window_hours * HOUR_MS / SPAN_MS))

    @property
    def rest(self) -> int:
        """Spans of a rest."""
        return max(1, round(self.rest_minutes * MINUTE_MS / SPAN_MS))


class Breaker(msgspec.Struct, frozen=True):
    """How it stands. `since` and `until` in ms, UTC; `until`: when an open one lets trials leave.

    `counts` are those that it looks at: of the window, of the trials where it is half-open.
    """

    kind: BreakerKind = "closed"
    since: int | None = None
    until: int | None = None
    counts: Counts = Counts()
    trials_left: int | None = None

    @property
    def text(self) -> str:
        """For people."""
        seen = self.counts
        ends = f"{seen.sent} left, {seen.bounced} bounced, {seen.complained} complained"
        trials = f"; {self.trials_left} may leave on trial" if self.trials_left is not None else ""
        return f"{self.kind.replace('_', '-')} ({ends}{trials})"


def breaker(spans: Mapping[int, Counts], settings: BreakerSettings, now: int) -> Breaker:
    """How the breaker stands at `now`, by the counts of each span of five minutes."""
    last = now // SPAN_MS
    opened: int | None = None
    begin = 0  # spans before are forgotten: what opened it once does not open it again
    for span in sorted(s for s in spans if s <= last):
        if opened is not None:
            trial_from = opened + settings.rest
            if span < trial_from:
                continue
            if _has_passed(spans, trial_from, span, settings):
                opened, begin = None, span
            elif spans[span].bad:
                opened = span
        if opened is None and _trips(_sum(spans, max(begin, span - settings.window + 1), span), settings):
            opened = span
    if opened is None:
        return Breaker(counts=_sum(spans, max(begin, last - settings.window + 1), last))
    return _not_closed(spans, opened, settings, last)


def _not_closed(spans: Mapping[int, Counts], opened: int, settings: BreakerSettings, last: int) -> Breaker:
    trial_from = opened + settings.rest
    if last < trial_from:
        seen = _sum(spans, opened - settings.window + 1, last)
        return Breaker("open", opened * SPAN_MS, trial_from * SPAN_MS, seen)
    if _has_passed(spans, trial_from, last, settings):
        return Breaker(counts=_sum(spans, last, last))
    seen = _sum(spans, trial_from, last)
    return Breaker("half_open", trial_from * SPAN_MS, None, seen, max(0, settings.trials - seen.sent))


def _has_passed(spans: Mapping[int, Counts], trial_from: int, span: int, settings: BreakerSettings) -> bool:
    """Whether the trials left, and a rest has passed since they might have."""
    return span >= trial_from + settings.rest and _sum(spans, trial_from, span - 1).sent >= settings.trials


def _trips(seen: Counts, settings: BreakerSettings) -> bool:
    if seen.bad < settings.least:
        return False
    left = max(1, seen.sent)
    return seen.bounced / left >= settings.bounces or seen.complained / left >= settings.complaints


def _sum(spans: Mapping[int, Counts], first: int, last: int) -> Counts:
    return sum((counts for span, counts in spans.items() if first <= span <= last), Counts())
