"""The ports of a scheduler with boundaries around them: timers, and the commits that it looks at."""

from collections.abc import Sequence

import msgspec

from waybook.engine.ports import Fire, Notice, Notices, Record, TimerRef, Timers
from waybook.events.engine import TimerClass
from waybook.events.subjects import RunKey
from waybook.services.scheduler.scheduler import SchedulerPorts
from waybook.testing.faults import Faults, FaultyCommandQueue


def faulty_scheduler_ports(ports: SchedulerPorts, faults: Faults) -> SchedulerPorts:
    """The ports of a scheduler, wrapped; log, hints and clock stay as they are."""
    return msgspec.structs.replace(
        ports,
        notices=FaultyNotices(ports.notices, faults),
        timers=FaultyTimers(ports.timers, faults),
        commands=FaultyCommandQueue(ports.commands, faults),
    )


class FaultyTimers:
    """Timers with boundaries around them, named by the timer's class, or by its name where one is taken back."""

    def __init__(self, inner: Timers, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def ensure_consumers(self, *, recreate: bool = False) -> None:
        """See Timers."""
        await self._inner.ensure_consumers(recreate=recreate)

    async def arm(self, timer: TimerRef, at: int | None = None) -> bool:
        """See Timers."""
        await self._faults.reached("arm.before", timer.timer_class)
        new = await self._inner.arm(timer, at)
        await self._faults.reached("arm.after", timer.timer_class)
        return new

    async def cancel(self, key: RunKey, name: str) -> None:
        """See Timers."""
        await self._faults.reached("disarm.before", name)
        await self._inner.cancel(key, name)
        await self._faults.reached("disarm.after", name)

    async def pull(self, timer_class: TimerClass, batch: int, timeout_s: float) -> Sequence[Fire]:
        """See Timers."""
        fires = await self._inner.pull(timer_class, batch, timeout_s)
        for _ in fires:
            await self._faults.reached("fired", timer_class)
        return [FaultyFire(fire, self._faults) for fire in fires]

    async def standing(self) -> frozenset[tuple[RunKey, str]]:
        """See Timers."""
        return await self._inner.standing()


class FaultyFire:
    """A Fire with boundaries around its verbs."""

    def __init__(self, inner: Fire, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self.timer: TimerRef = inner.timer
        self.fired_at: int = inner.fired_at

    async def ack(self) -> None:
        """See Fire."""
        await self._faults.reached("fire.before", self.timer.timer_class)
        await self._inner.ack()
        await self._faults.reached("fire.after", self.timer.timer_class)

    async def nak(self, delay_s: float = 0.0) -> None:
        """See Fire."""
        await self._inner.nak(delay_s)


class FaultyNotices:
    """Notices with boundaries around their acknowledgement, named by the run's subject."""

    def __init__(self, inner: Notices, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def ensure_consumer(self, *, rewind: bool = False) -> None:
        """See Notices."""
        await self._inner.ensure_consumer(rewind=rewind)

    async def pull(self, batch: int, timeout_s: float) -> Sequence[Notice]:
        """See Notices."""
        return await self._inner.pull(batch, timeout_s)

    async def read(self, notice: Notice) -> Record | None:
        """See Notices."""
        return await self._inner.read(notice)

    async def ack(self, notices: Sequence[Notice]) -> None:
        """See Notices."""
        for notice in notices:
            await self._faults.reached("told.before", notice.subject)
        await self._inner.ack(notices)
        for notice in notices:
            await self._faults.reached("told.after", notice.subject)
