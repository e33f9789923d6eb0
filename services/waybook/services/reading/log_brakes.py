"""The brakes that the log gives: the breaker, the budget for models, and trust that was taken back."""

from waybook.engine.aggregates.judged import judged_of, matched_of
from waybook.engine.aggregates.keys import DAY_MS, budget_key, category_key, outcomes_key, sender_key
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.outcomes import Counts, spans_of
from waybook.engine.aggregates.sender import sender_of
from waybook.engine.ports import Clock
from waybook.inbox.brakes import StandingBrakes, Trial, WorkingHours
from waybook.inbox.breaker import HOUR_MS, NAME, Breaker, BreakerSettings, breaker
from waybook.inbox.plugins import Plugins
from waybook.services.reading.watched import Watched
from waybook.services.walker.meter import SPEND

MILLION = 1_000_000


class LogBrakes(StandingBrakes):
    """Reads the aggregates of one tenant from STATE, by the leader's word, for every reply anew.

    `budget`: how much models may cost on a day, UTC, in the unit of their prices; None: no limit.
    """

    def __init__(
        self,
        watched: Watched,
        clock: Clock,
        tenant: str,
        *,
        settings: BreakerSettings,
        budget: float | None = None,
        shadow: bool = True,
        hours: WorkingHours | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        super().__init__(shadow=shadow, hours=hours)
        self._watched = watched
        self._clock = clock
        self._tenant = tenant
        self._settings = settings
        self._budget = budget
        self._plugins = plugins or Plugins(())

    async def breaker(self, at: int) -> Breaker:
        """How the breaker stands at `at` (ms, UTC)."""
        spans: dict[int, Counts] = {}
        first = at - round(self._settings.window_hours * HOUR_MS)
        for day in range(first // DAY_MS, at // DAY_MS + 1):
            spans |= spans_of(await self._watched.look(outcomes_key(self._tenant, day * DAY_MS)))
        return breaker(spans, self._settings, at)

    async def spent(self, at: int) -> float:
        """What models have cost on the day of `at`, in the unit of their prices."""
        run = await self._watched.look(budget_key(self._tenant, SPEND, at))
        return ledger_of(run).used / MILLION

    async def open_breaker(self) -> str | None:
        """See Brakes."""
        stands = await self.breaker(self._clock.now())
        if stands.kind == "open" or stands.trials_left == 0:
            return f"{NAME}: {stands.text}"
        return None

    async def trial(self, at: int) -> Trial | None:
        """See Brakes."""
        stands = await self.breaker(at)
        if stands.kind != "half_open" or stands.since is None:
            return None
        return Trial(f"trial-{stands.since}", self._settings.trials)

    async def spend_exhausted(self) -> bool:
        """See Brakes."""
        return self._budget is not None and await self.spent(self._clock.now()) >= self._budget

    async def distrust(self, sender: str, category: str) -> str | None:
        """See Brakes."""
        known = sender_of(await self._watched.look(sender_key(self._tenant, sender))).distrust.get(category)
        if known is None:
            return None
        by = "" if known.by == "engine" else f", says {known.by}"
        return f"nothing about {category} leaves unattended for this sender: {known.reason or 'no reason given'}{by}"

    async def matched(self, sender: str, category: str) -> int | None:
        """See Brakes. Whom nobody has decided about is a first contact."""
        known = matched_of(await self._watched.look(sender_key(self._tenant, sender)))
        return known.get(category, 0) if known else None

    async def tightened(self, category: str) -> int:
        """See Brakes."""
        return judged_of(await self._watched.look(category_key(self._tenant, category))).level

    async def objection(self, sender: str, category: str) -> str | None:
        """See Brakes."""
        return await self._plugins.objection(sender, category)
