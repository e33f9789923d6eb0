"""The Ledgers of one body, kept by the system aggregates `@budget` and `@sender`."""

from waybook.agents.ledgers import Reservation
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

    async def charge(self, scope: str, *, cap: int, amount: int = 1) -> Reservation | None:
        """See Ledgers."""
        began = self._action.began_at  # an attempt that runs past midnight asks for the day that it began in
        key = budget_key(self._run.key.tenant, scope, began)
        return await self._reserve(key, cap=cap, amount=amount, expires=(began // DAY_MS + 2) * DAY_MS)

    async def rate(self, address: str, *, cap: int, within_s: float) -> Reservation | None:
        """See Ledgers. What is held counts until it expires, as what was used does."""
        expires = self._clock.now() + round(within_s * 1000)
        return await self._reserve(sender_key(self._run.key.tenant, address), cap=cap, amount=1, expires=expires)

    async def release(self, reservation: Reservation) -> None:
        """See Ledgers."""
        key = RunKey(self._run.key.tenant, reservation.agent, reservation.run)
        await self._aggregates.ask(key, Asked(SettleReservation(self._run.key.run, reservation.execution, "released")))

    async def _reserve(self, key: RunKey, *, cap: int, amount: int, expires: int) -> Reservation | None:
        run, execution = self._run.key.run, self._action.execution
        asked = Asked(Reserve(run, execution, cap, expires, amount))
        if isinstance((await self._aggregates.ask(key, asked)).outcome, Refused):
            return None
        return Reservation(key.agent, key.run, execution)
