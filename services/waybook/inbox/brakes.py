"""What brakes unattended replies and stands outside the message: breakers, hours, spending, plugins, the scorecard."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, time
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

T = TypeVar("T")

PATIENCE_S = 5.0
"""How long one of them may take to answer; silence objects like an error does."""


class WorkingHours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When replies may leave unattended: from `opens` to `closes` (HH:MM) in `zone`, on `days` (0 is Monday).

    Hours that close at or before they open go on over midnight and belong to the day on which they opened.
    """

    opens: str = "08:00"
    closes: str = "18:00"
    zone: str = "UTC"
    days: tuple[int, ...] = (0, 1, 2, 3, 4)

    def are_open(self, at: int) -> bool:
        """Whether `at` (ms, UTC) lies within. Raises ValueError and KeyError for hours that cannot be read."""
        local = datetime.fromtimestamp(at / 1000, UTC).astimezone(ZoneInfo(self.zone))
        opens, closes, now, day = _clock(self.opens), _clock(self.closes), local.time(), local.weekday()
        if opens < closes:
            return day in self.days and opens <= now < closes
        return (day in self.days and now >= opens) or ((day - 1) % 7 in self.days and now < closes)

    def check(self) -> None:
        """Raises ValueError saying what of these hours cannot be read."""
        for name in ("opens", "closes"):
            try:
                _clock(getattr(self, name))
            except ValueError as error:
                raise ValueError(f"{name} has to be HH:MM, not {getattr(self, name)!r}") from error
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"there is no time zone {self.zone!r}") from error
        if not set(self.days) <= set(range(7)):
            raise ValueError(f"days are numbers from 0 (Monday) to 6, not {self.days}")


def _clock(text: str) -> time:
    """A time of the day; `24:00` is midnight at its end."""
    return time() if text == "24:00" else time.fromisoformat(text)


class Trial(msgspec.Struct, frozen=True):
    """The ledger that counts the trials of one half-open breaker, and how many there are."""

    scope: str
    cap: int


class Brakes(Protocol):
    """Asked anew for every reply that might leave unattended. Whatever one raises keeps the reply for a person, but for
    working hours that cannot be read, which are ignored (pipeline-spec 7.6)."""

    async def open_breaker(self) -> str | None:
        """The name of a circuit breaker that is open."""
        ...

    async def spend_exhausted(self) -> bool:
        """Whether the budget for models is used up."""
        ...

    async def in_working_hours(self, at: int) -> bool:
        """Whether replies may leave at `at` (ms, UTC)."""
        ...

    async def shadow(self) -> bool:
        """Whether the decision is only noted, and a person asked all the same."""
        ...

    async def objection(self, sender: str, category: str) -> str | None:
        """What a plugin has against it."""
        ...

    async def trial(self, at: int) -> "Trial | None":
        """What a reply is charged to that leaves while a breaker is half-open at `at` (ms, UTC)."""
        ...

    async def distrust(self, sender: str, category: str) -> str | None:
        """Why nothing of this category leaves without a person for this sender."""
        ...

    async def matched(self, sender: str, category: str) -> int | None:
        """How many decisions in shadow mode people agreed with, for this sender and category; None: first contact."""
        ...

    async def tightened(self, category: str) -> int:
        """By how many steps a category's threshold stands above what the settings say."""
        ...


class StandingBrakes:
    """The brakes that settings alone give: no breaker is open, nothing is spent, nobody is known."""

    def __init__(self, *, shadow: bool = True, hours: WorkingHours | None = None) -> None:
        self._shadow = shadow
        self._hours = hours

    async def open_breaker(self) -> str | None:
        """See Brakes."""
        return None

    async def spend_exhausted(self) -> bool:
        """See Brakes."""
        return False

    async def in_working_hours(self, at: int) -> bool:
        """See Brakes."""
        return self._hours is None or self._hours.are_open(at)

    async def shadow(self) -> bool:
        """See Brakes."""
        return self._shadow

    async def objection(self, sender: str, category: str) -> str | None:
        """See Brakes."""
        return None

    async def trial(self, at: int) -> Trial | None:
        """See Brakes."""
        return None

    async def distrust(self, sender: str, category: str) -> str | None:
        """See Brakes."""
        return None

    async def matched(self, sender: str, category: str) -> int | None:
        """See Brakes."""
        return None

    async def tightened(self, category: str) -> int:
        """See Brakes."""
        return 0


class Unreadable(msgspec.Struct, frozen=True):
    """One of the brakes did not answer; `text` says how."""

    text: str


async def read(question: Awaitable[T]) -> T | Unreadable:
    """The answer of one of the brakes, or that there is none."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await question
    except Exception as error:  # noqa: BLE001 - whatever it raises, it did not answer
        return Unreadable(f"it could not be read ({type(error).__name__})")
