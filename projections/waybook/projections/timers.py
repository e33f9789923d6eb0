"""The read model `timers`: one row for each timer that a run waits for.

The table is `migrations/tables/0004_timers.sql`, the statements are `timers.sql`.
"""

from collections.abc import Iterable
from typing import Any

from waybook.events import engine as e
from waybook.projections.changes import Handler, RunChange
from waybook.projections.storable import text

NAME = "timers"
KEY = ("tenant", "agent", "run", "timer")

Row = tuple[Any, ...]


def _armed(change: RunChange, event: e.TimerArmed) -> None:
    change.timers = {**change.timers, change.event_name: (event.timer_class, event.due, text(event.about))}


def _resolved(change: RunChange, event: e.TimerFired | e.TimerCancelled) -> None:
    if event.timer in change.timers:
        change.timers = {name: row for name, row in change.timers.items() if name != event.timer}
    else:
        change.resolved = (*change.resolved, event.timer)


HANDLERS: dict[type, Handler] = {e.TimerArmed: _armed, e.TimerFired: _resolved, e.TimerCancelled: _resolved}


def inserts(changes: Iterable[RunChange]) -> list[Row]:
    """Timers armed in the batch and still pending at its end, for the statement `insert_timers`."""
    return [(c.key.tenant, c.key.agent, c.key.run, name, *row) for c in changes for name, row in c.timers.items()]


def drops(changes: Iterable[RunChange]) -> list[Row]:
    """Timers armed earlier and resolved in the batch, for the statement `drop_timers`."""
    return [(c.key.tenant, c.key.agent, c.key.run, name) for c in changes for name in c.resolved]
