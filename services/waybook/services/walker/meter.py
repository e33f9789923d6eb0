"""Charges what a step's model calls cost to the budget of the day, before the step's result is stored."""

import asyncio
import logging

from waybook.agents.prices import Prices
from waybook.engine.aggregates.keys import budget_key
from waybook.engine.aggregates.requests import Asked, Learn
from waybook.engine.ports import Clock, PortError
from waybook.engine.run import Action, Run
from waybook.events.engine import Spent, TokenUsage
from waybook.services.walker.aggregates import Aggregates

log = logging.getLogger(__name__)

SPEND = "spend"
"""The ledger of what models cost on a day, in millionths of the unit of their prices."""

PORT_PAUSE_S = 0.5


class Meter:
    """Counts every attempt once, also one that failed; after an outage possibly twice, never too little."""

    def __init__(self, aggregates: Aggregates, prices: Prices, clock: Clock) -> None:
        self._aggregates = aggregates
        self._prices = prices
        self._clock = clock

    async def used(
        self, run: Run, action: Action, model: str | None, usage: TokenUsage | None, estimate: TokenUsage | None = None
    ) -> None:
        """Returns when it is stored; a port that is away is waited for. `estimate`: of calls that nobody counted."""
        amount = sum(self._prices.cost(model, one) for one in (usage, estimate) if one is not None)
        if amount <= 0:
            return
        fact = Spent(run=run.key.run, action=action.id, amount=amount, model=model, estimated=estimate is not None)
        key = budget_key(run.key.tenant, SPEND, self._clock.now())
        while True:
            try:
                await self._aggregates.ask(key, Asked(Learn(fact)))
                return
            except PortError as error:
                log.warning("the meter waits for a port", extra={"action": "meter_waits_for_port", "error": str(error)})
                await asyncio.sleep(PORT_PAUSE_S)
