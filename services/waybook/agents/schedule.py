"""Recurring runs: when an agent's runs begin by themselves."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from waybook.agents.errors import DefinitionError
from waybook.events.subjects import TOKEN
from waybook.events.typed import StartEvent

Missed = Literal["skip", "latest", "all"]

MOST_OCCURRENCES = 10_000
"""So many are looked at in one go; a schedule of every second that stood still for hours has more."""


FIRST_SPAN_MS = 2_400_000
"""Fewer than 10,000 times, also of every second: the last of them is the last."""

LAST_SPAN_MS = 20 * 366 * 86_400_000

MOST_CATCH_UP_S = 366 * 86_400


def _is_span(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_CATCH_UP_S


class ScheduledEvent(StartEvent, frozen=True, kw_only=True):
    """A start event that knows for when its run was scheduled (ms since the epoch, UTC)."""

    scheduled_at: int = 0


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Begins a run of the agent, with the event `start`, at the times of a cron expression of five fields (or six, the
    first then seconds), in the time zone `zone`.

    `name` is a token (a-z, 0-9, _ and -): it is in the run's id, and all runs of a schedule are one thread. `missed`
    says what becomes of times at which no scheduler was at work, up to `catch_up_s` (15 minutes) ago: `latest`: the last of
    them is made up for, `all`: each of them, `skip`: none. What is older is dropped, with a warning. A time never has
    two runs, however many schedulers look. A start that is a `ScheduledEvent` is told its time.

    Raises DefinitionError for a field that is none of that (an expression, a zone, a rule, a start), and where cronsim
    is not installed.
    """

    name: str
    cron: str
    start: StartEvent
    zone: str = "UTC"
    missed: Missed = "latest"
    catch_up_s: float = 900.0
    configuration: dict[str, Any] = {}

    def __post_init__(self) -> None:
        for text in self._wrong():
            raise DefinitionError(f"schedule {self.name}: {text}")
        if self.next_after(0) is None:
            raise DefinitionError(f"schedule {self.name}: {self.cron!r} names a time that never comes")

    def _wrong(self) -> Iterator[str]:
        """What is wrong with the fields, whatever stands in them."""
        if not isinstance(self.name, str) or not TOKEN.fullmatch(self.name):
            yield f"its name may hold a-z, 0-9, _ and - alone (pattern {TOKEN.pattern})"
        if not isinstance(self.cron, str):
            yield f"{self.cron!r} is no cron expression: write a text, such as '0 7 * * 1-5'"
        if not isinstance(self.zone, str):
            yield f"there is no time zone {self.zone!r}: write its name, such as 'Europe/Zurich'"
        if self.missed not in get_args(Missed):
            yield f"missed={self.missed!r} is no rule; it is one of {', '.join(get_args(Missed))}"
        if not _is_span(self.catch_up_s):
            yield f"catch_up_s={self.catch_up_s!r} needs a number of seconds, 0 to {MOST_CATCH_UP_S} (a year)"
        if not isinstance(self.start, StartEvent):
            yield f"start={self.start!r} is no start event: write an object of a class that derives from StartEvent"
        if not isinstance(self.configuration, dict):
            yield f"configuration={self.configuration!r} needs a dictionary: the fields of the agent's configuration"

    def between(self, after: int, until: int) -> list[int]:
        """The times above `after`, up to `until` and that one included, in ms UTC; at most the first 10,000."""
        found: list[int] = []
        for at in self._from(after):
            if at > until or len(found) == MOST_OCCURRENCES:
                break
            found.append(at)
        return found

    def next_after(self, after: int) -> int | None:
        """The first time above `after`, in ms UTC; None where there is none any more."""
        return next(self._from(after), None)

    def last(self, until: int, count: int) -> list[int]:
        """The last `count` times (10,000 at most) up to `until`, that one included, in ms UTC; of the last 20 years."""
        span = FIRST_SPAN_MS
        while len(found := self.between(until - span, until)) < count and span < LAST_SPAN_MS:
            span *= 4
        return found[-count:]

    def _from(self, after: int) -> Iterator[int]:
        try:
            from cronsim import CronSim, CronSimError
        except ImportError as error:
            raise DefinitionError("schedules need cronsim: pip install 'waybook[schedules]'") from error
        try:
            begin = datetime.fromtimestamp(after / 1000, UTC).astimezone(ZoneInfo(self.zone))
            times = CronSim(self.cron, begin)
        except CronSimError as error:
            raise DefinitionError(f"schedule {self.name}: {self.cron!r} is no cron expression: {error}") from error
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise DefinitionError(f"schedule {self.name}: there is no time zone {self.zone!r}") from error
        for at in times:
            ms = round(at.timestamp() * 1000)
            if ms > after:
                yield ms
