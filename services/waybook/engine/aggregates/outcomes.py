"""`@outcomes`: what became of the replies that left without a person on one day, counted in spans of five minutes.

A day has a subject of its own, as a budget has, so that none grows without end.
"""

import msgspec

from waybook.engine.run import Run
from waybook.events import engine as e

SPAN_MS = 300_000

_SPANS, _SEEN = "spans", "seen"


class Counts(msgspec.Struct, frozen=True):
    """Replies that left, and those that came to a bad end."""

    sent: int = 0
    bounced: int = 0
    complained: int = 0

    @property
    def bad(self) -> int:
        """Bounces and complaints together."""
        return self.bounced + self.complained

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.sent + other.sent, self.bounced + other.bounced, self.complained + other.complained)


def spans_of(run: Run | None) -> dict[int, Counts]:
    """The counts of a folded `@outcomes`, by the number of their span since the epoch; None: nothing was counted."""
    return {int(span): counts for span, counts in run.fields.get(_SPANS, {}).items()} if run is not None else {}


def is_counted(run: Run | None, event: e.OutcomeCounted) -> bool:
    """Whether this end of this run's reply was counted on that day."""
    return run is not None and f"{event.run}/{event.kind}" in run.fields.get(_SEEN, ())


def fold_counted(run: Run, event: e.OutcomeCounted, name: str, at: int) -> None:
    span = str(event.at // SPAN_MS)
    one = Counts(
        sent=int(event.kind == "sent"),
        bounced=int(event.kind == "bounced"),
        complained=int(event.kind == "complained"),
    )
    spans: dict[str, Counts] = run.fields.get(_SPANS, {})
    run.fields[_SPANS] = {**spans, span: spans.get(span, Counts()) + one}
    run.fields[_SEEN] = {**run.fields.get(_SEEN, {}), f"{event.run}/{event.kind}": None}
