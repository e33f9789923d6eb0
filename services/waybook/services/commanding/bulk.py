"""Decisions on many runs at once: a limit, and each run once."""

from collections.abc import Iterable
from typing import ClassVar

from waybook.events.errors import InvalidInput

MOST = 50
"""Runs that one person may decide on at once."""


class TooMany(InvalidInput):
    """More runs than may be decided on at once; nothing was decided."""

    reason: ClassVar[str] = "too_many"


def checked(runs: Iterable[str]) -> list[str]:
    """The runs in order, each once. Raises TooMany, so that the request is refused as a whole."""
    once = list(dict.fromkeys(runs))
    if len(once) > MOST:
        raise TooMany(f"{len(once)} runs are too many at once; decide on at most {MOST}")
    return once
