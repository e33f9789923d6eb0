"""The Ledgers of one body, kept by the system aggregates `@budget` and `@sender`."""

from waybook.engine.aggregates.keys import DAY_MS, budget_key, sender_key
from waybook.engine.aggregates.requests import Asked, Reserve, SettleReservation
from waybook.engine.inputs import Refused
from waybook.engine.ports import Clock
from waybook.engine.run import Action, Run
from waybook.events.subjects import RunKey
from waybook.services.walker.aggregates import Aggregates


class BodyLedgers:
    """Charges in the name of one execution. A reservation holds until its day, or its window, is over."""

    def __init__(self, aggregates: Aggregates, clock: Clock, run: Run, action: Action) -> None:
        self._aggregates = aggregates
        self._clock = clock
        self._run = run
        self._action = action

    async def charge(self, scope: str, *, cap: int, amount: int = 1) -> bool:
        """See Ledgers."""
        began = self._action.began_at  # an attempt that runs past midnight asks for the day that it began in
        key = budget_key(self._run.key.tenant, scope, began)
        return await self._reserve(key, cap=cap, amount=amount, expires=(began // DAY_MS + 2) * DAY_MS)

    async def rate(self, address: str, *, cap: int, within_s: float) -> bool:
        """See Ledgers."""
        expires = self._clock.now() + round(within_s * 1000)
        key = sender_key(self._run.key.tenant, address)
        if not await self._reserve(key, cap=cap, amount=1, expires=expires):
            return False
        used = SettleReservation(self._run.key.run, self._action.execution, "used")
        await self._aggregates.ask(key, Asked(used))
        return True

    async def _reserve(self, key: RunKey, *, cap: int, amount: int, expires: int) -> bool:
        run = self._run.key.run
        asked = Asked(Reserve(run, self._action.execution, cap, expires, amount))
        return not isinstance((await self._aggregates.ask(key, asked)).outcome, Refused)
