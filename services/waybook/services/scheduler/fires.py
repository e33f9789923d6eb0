"""Hands fired timers over as commands, class by class, restarts at a bounded rate."""

import asyncio
import logging
from collections.abc import Sequence

from waybook.engine.hooks import Hook, TimerHandedOver, TimerRearmed, ignore
from waybook.engine.ports import Clock, Fire, Timers
from waybook.events.engine import TimerClass
from waybook.services.scheduler.allowance import TokenBucket
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.effects import handed_over
from waybook.services.scheduler.firing import LOOK_AGAIN_MS, ArmAgain, on_fire

log = logging.getLogger(__name__)

BATCH = 256


class Fires:
    """The fires of one class. `bucket` bounds how many of them are handed over."""

    def __init__(
        self,
        timer_class: TimerClass,
        timers: Timers,
        doer: Doer,
        clock: Clock,
        *,
        bucket: TokenBucket | None = None,
        look_again_ms: int = LOOK_AGAIN_MS,
        hook: Hook = ignore,
    ) -> None:
        self.timer_class = timer_class
        self.name = f"fires of {timer_class}"
        self._timers = timers
        self._doer = doer
        self._clock = clock
        self._bucket = bucket
        self._look_again_ms = look_again_ms
        self._hook = hook
        self._undone: Sequence[Fire] = ()

    @property
    def busy(self) -> bool:
        """Whether something is being done that a stop should not cut short."""
        return bool(self._undone)

    async def step(self, timeout_s: float) -> int:
        """Takes what fired, waits up to `timeout_s` for it, and hands it over; how many there were.

        Raises PortError; the next call does the same again.
        """
        if not self._undone:
            allowed = await self._allowed(timeout_s)
            if allowed == 0:
                return 0
            self._undone = await self._timers.pull(self.timer_class, allowed, timeout_s)
        fires = self._undone
        now = self._clock.now()
        ripe, early = [], []
        for fire in fires:
            verdict = on_fire(fire.timer, fire.fired_at, now, self._look_again_ms)
            early.append((fire, verdict.at)) if isinstance(verdict, ArmAgain) else ripe.append(fire)
        for fire, at in early:
            await self._timers.arm(fire.timer, at)
            await fire.ack()
            self._hook(TimerRearmed(self.timer_class))
        await self._doer.give([handed_over(fire.timer) for fire in ripe])
        for fire in ripe:
            await fire.ack()
            self._hook(TimerHandedOver(self.timer_class, (now - fire.timer.due) / 1000))
        if self._bucket is not None:
            self._bucket.take(len(ripe))
        self._undone = ()
        return len(fires)

    async def _allowed(self, timeout_s: float) -> int:
        if self._bucket is None:
            return BATCH
        now = asyncio.get_running_loop().time
        available = self._bucket.available(now())
        if available == 0:
            await asyncio.sleep(min(timeout_s, self._bucket.wait_s(now())))
            available = self._bucket.available(now())
        return min(BATCH, available)
