"""What is looked at from time to time: timers that are not armed any more, runs that lost their next move."""

import logging

from waybook.engine.ports import Clock, Timers
from waybook.events.subjects import RunKey
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.effects import ArmTimer, Give
from waybook.services.scheduler.hints import Hints
from waybook.services.scheduler.runs import Runs, Unreadable

log = logging.getLogger(__name__)

STILL_MS = 120_000
"""A run without a commit for so long (two ack_waits) and without a blocker is asked to go on."""


class Rounds:
    """One round is `reconcile` and `watch`. `still_ms`: see STILL_MS."""

    def __init__(
        self, hints: Hints, runs: Runs, timers: Timers, doer: Doer, clock: Clock, *, still_ms: int = STILL_MS
    ) -> None:
        self._hints = hints
        self._runs = runs
        self._timers = timers
        self._doer = doer
        self._clock = clock
        self._still_ms = still_ms
        self._asked: dict[RunKey, int] = {}

    async def reconcile(self) -> int:
        """Arms what runs wait for and TIMERS does not have (lost, purged by hand); how many. Raises PortError."""
        hinted = await self._hints.pending_timers()
        if not hinted:
            return 0
        standing = await self._timers.standing()
        missing = [t for t in hinted if (t.key, t.name) not in standing]
        lost: list[ArmTimer] = []
        for key in dict.fromkeys(t.key for t in missing):
            lost += await self._lost_timers(key, {t.name for t in missing if t.key == key})
        if lost:
            log.warning("timers were lost", extra={"action": "timers_reconciled", "count": len(lost)})
            await self._doer.do(lost)
        return len(lost)

    async def _lost_timers(self, key: RunKey, names: set[str]) -> list[ArmTimer]:
        """A timer that was handed over and waits in COMMANDS is armed too: its second fire changes nothing."""
        try:
            pending = await self._runs.pending_timers(key)
        except Unreadable as error:
            log.error("a run cannot be read", extra={"action": "round_run_unreadable", "error": str(error)})
            return []
        return [ArmTimer(timer) for timer in pending if timer.name in names]

    async def watch(self) -> int:
        """Sends `continue` to runs that stand still, once for each commit after which they do; how many."""
        still = await self._hints.standing_still(self._clock.now() - self._still_ms)
        self._asked = {s.key: self._asked[s.key] for s in still if s.key in self._asked}
        new = [s for s in still if self._asked.get(s.key) != s.sequence]
        await self._doer.give([Give(f"{s.key}/{s.sequence}/continue", s.key, "continue") for s in new])
        self._asked.update((s.key, s.sequence) for s in new)
        return len(new)
