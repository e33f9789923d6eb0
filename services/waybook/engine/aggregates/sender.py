"""`@sender`: what is kept of one sender beside the rate of replies: arrivals, whether they are blocked, trust.

Arrivals are let in at so many a minute after a burst. That is one number: the time until which what came so far keeps
the sender's rate busy. Each arrival moves it by one interval, and may begin as soon as no more than a burst is ahead.
"""

import msgspec

from waybook.engine.aggregates.judged import matched_of
from waybook.engine.run import Run
from waybook.events import engine as e

MINUTE_MS = 60_000
KEPT_MS = 600_000
"""How long an arrival's place is remembered after its time has come, so that its start may be delivered again."""

MOST_CATEGORIES = 100

_FULL, _ARRIVALS, _BLOCK, _DISTRUST = "full_until", "arrivals", "block", "distrust"


class Rate(msgspec.Struct, frozen=True):
    """How fast one sender's messages may begin: so many a minute, after so many at once."""

    per_minute: int
    burst: int

    @property
    def interval_ms(self) -> float:
        """Milliseconds between two of them in the long run."""
        return MINUTE_MS / max(1, self.per_minute)


class Block(msgspec.Struct, frozen=True):
    """Whether a sender is blocked; who said so, why, and when (ms, UTC)."""

    on: bool = False
    by: str | None = None
    reason: str | None = None
    at: int | None = None


class Distrust(msgspec.Struct, frozen=True):
    """Why nothing leaves without a person for a sender and a category; `run`: whose reply came to a bad end."""

    by: str
    reason: str | None
    run: str | None
    at: int


class Sender(msgspec.Struct, frozen=True):
    """A sender as they stand. `arrivals`: when runs that came lately may begin (ms, UTC). `matched`: their scorecard."""

    full_until: int = 0
    arrivals: dict[str, int] = {}
    block: Block = Block()
    distrust: dict[str, Distrust] = {}
    matched: dict[str, int] = {}


def sender_of(run: Run | None) -> Sender:
    """The sender of a folded `@sender`; None: nothing is known of them."""
    if run is None:
        return Sender()
    fields = run.fields
    return Sender(
        fields.get(_FULL, 0),
        fields.get(_ARRIVALS, {}),
        fields.get(_BLOCK, Block()),
        fields.get(_DISTRUST, {}),
        matched_of(run),
    )


def admit(sender: Sender, run: str, rate: Rate, now: int) -> e.ArrivalAdmitted | None:
    """The place of an arrival; None where the run has one already."""
    if run in sender.arrivals:
        return None
    full = max(sender.full_until, now) + rate.interval_ms
    begins = max(now, round(full - max(1, rate.burst) * rate.interval_ms))
    return e.ArrivalAdmitted(run=run, begins=begins, full_until=round(full))


def fold_arrival(run: Run, event: e.ArrivalAdmitted, name: str, at: int) -> None:
    kept = {k: begins for k, begins in run.fields.get(_ARRIVALS, {}).items() if begins > at - KEPT_MS}
    run.fields[_ARRIVALS] = {**kept, event.run: event.begins}
    run.fields[_FULL] = event.full_until


def fold_block(run: Run, event: e.SenderBlockSet, name: str, at: int) -> None:
    run.fields[_BLOCK] = Block(event.on, event.by, event.reason, at)


def fold_trust(run: Run, event: e.SenderTrustSet, name: str, at: int) -> None:
    kept = {k: d for k, d in run.fields.get(_DISTRUST, {}).items() if k != event.category}
    if not event.trusted:
        kept[event.category] = Distrust(event.by, event.reason, event.run, at)
    run.fields[_DISTRUST] = kept
