"""Where to look, as the read models have it; they lag, so STATE decides what is done about it (DESIGN 2, invariant 13)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from waybook.engine.ports import TimerRef
from waybook.events.subjects import RunKey


class Still(msgspec.Struct, frozen=True):
    """A run that has not ended and did not move lately; `sequence` is that of its last commit."""

    key: RunKey
    sequence: int


class Hints(Protocol):
    """Questions to the read models. Every method raises PortError while they cannot be asked."""

    async def pending_timers(self) -> Sequence[TimerRef]:
        """Timers that runs wait for, of all tenants."""
        ...

    async def standing_still(self, since_ms: int) -> Sequence[Still]:
        """Open runs without a commit since that time (ms UTC) and without a named blocker."""
        ...

    async def unsent(self, tenant: str) -> Sequence[RunKey]:
        """Runs of a tenant with a send that may not have begun."""
        ...


class NoHints:
    """For a scheduler without a database: nothing is reconciled, no lost next move is noticed."""

    async def pending_timers(self) -> Sequence[TimerRef]:
        return ()

    async def standing_still(self, since_ms: int) -> Sequence[Still]:
        return ()

    async def unsent(self, tenant: str) -> Sequence[RunKey]:
        return ()
