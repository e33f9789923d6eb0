"""What people made of drafts: of each sender's, a scorecard; of each category's (`@category`), how a week went.

A category whose drafts people refuse too often has its threshold raised by itself, a step a week at most; only a person
lowers it again.
"""

import msgspec

from waybook.engine.aggregates.keys import DAY_MS
from waybook.engine.run import Run
from waybook.events import engine as e

SENDER = "@sender"
WEEK_DAYS = 7
LEAST = 5
"""Decisions within a week that it takes at least: fewer say nothing."""

MOST_REFUSED = 0.4
"""The share of refusals above which a threshold is raised."""

MOST_CATEGORIES = 100

_MATCHED, _DAYS, _LEVEL, _MOVED = "matched", "days", "level", "moved"


class Tally(msgspec.Struct, frozen=True):
    """Decisions of one day, or of several."""

    approved: int = 0
    rejected: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.approved + other.approved, self.rejected + other.rejected)


class Moved(msgspec.Struct, frozen=True):
    """When a threshold moved last (ms, UTC), on whose word, and why."""

    at: int
    by: str
    reason: str | None = None


class Judged(msgspec.Struct, frozen=True):
    """A category as it stands. `level`: steps above the settings' threshold. `days`: decisions by day since the epoch."""

    level: int = 0
    moved: Moved | None = None
    days: dict[str, Tally] = {}

    def week(self, at: int) -> Tally:
        """The decisions of the seven days that end with that of `at` (ms, UTC)."""
        first = at // DAY_MS - WEEK_DAYS + 1
        return sum((tally for day, tally in self.days.items() if first <= int(day) <= at // DAY_MS), Tally())


def judged_of(run: Run | None) -> Judged:
    """The category of a folded `@category`; None: nobody has decided yet."""
    if run is None:
        return Judged()
    return Judged(run.fields.get(_LEVEL, 0), run.fields.get(_MOVED), run.fields.get(_DAYS, {}))


def matched_of(run: Run | None) -> dict[str, int]:
    """Of a folded `@sender`: by category, how often people let go unchanged what the gates would have let go."""
    found: dict[str, int] = run.fields.get(_MATCHED, {}) if run is not None else {}
    return found


def raised(before: Judged, fact: e.ReplyJudged, now: int) -> e.ThresholdMoved | None:
    """What one more decision does to a category's threshold."""
    if before.moved is not None and now - before.moved.at < WEEK_DAYS * DAY_MS:
        return None
    week = before.week(fact.at) + _tally(fact)
    seen = week.approved + week.rejected
    if seen < LEAST or week.rejected / seen <= MOST_REFUSED:
        return None
    reason = f"people refused {week.rejected} of {seen} answers within a week"
    return e.ThresholdMoved(level=before.level + 1, by="engine", reason=reason)


def _tally(fact: e.ReplyJudged) -> Tally:
    refused = fact.verdict == "rejected"
    return Tally(approved=int(not refused), rejected=int(refused))


def fold_judged(run: Run, event: e.ReplyJudged, name: str, at: int) -> None:
    if run.agent == SENDER:
        known: dict[str, int] = run.fields.get(_MATCHED, {})
        if event.category in known or len(known) < MOST_CATEGORIES:
            run.fields[_MATCHED] = {**known, event.category: known.get(event.category, 0) + int(event.matched)}
        return
    day = event.at // DAY_MS
    kept = {d: tally for d, tally in run.fields.get(_DAYS, {}).items() if int(d) > day - WEEK_DAYS}
    run.fields[_DAYS] = {**kept, str(day): kept.get(str(day), Tally()) + _tally(event)}


def fold_moved(run: Run, event: e.ThresholdMoved, name: str, at: int) -> None:
    run.fields[_LEVEL] = event.level
    run.fields[_MOVED] = Moved(at, event.by, event.reason)
