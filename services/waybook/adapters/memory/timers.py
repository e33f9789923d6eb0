"""TIMERS and the notices of STATE in memory, on the given clock."""

import asyncio
from collections.abc import Collection, Sequence

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.faults import Faults
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.engine.ports import Notice, Record, TimerRef
from waybook.events.engine import TimerClass
from waybook.events.headers import PARENT, types_of
from waybook.events.subjects import RunKey

LEASE_MS = 60_000
LOOK_S = 0.02


class _Armed:
    __slots__ = ("at", "fired_at", "leased_until", "timer")

    def __init__(self, timer: TimerRef, at: int) -> None:
        self.timer = timer
        self.at = at
        self.fired_at: int | None = None
        self.leased_until = 0


class MemoryFire:
    """The port Fire."""

    def __init__(self, timers: "MemoryTimers", armed: _Armed) -> None:
        self._timers = timers
        self._armed = armed
        self.timer = armed.timer
        self.fired_at = armed.fired_at or 0

    async def ack(self) -> None:
        """It was handed over."""
        self._timers.drop(self._armed)

    async def nak(self, delay_s: float = 0.0) -> None:
        """It comes again."""
        self._armed.leased_until = self._timers.now() + int(delay_s * 1000)


class MemoryTimers:
    """The port Timers. As on JetStream, a fired timer and one that is armed anew under its name stand side by side."""

    def __init__(self, clock: ManualClock, *, lease_ms: int = LEASE_MS, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self._clock = clock
        self._lease_ms = lease_ms
        self._armed: dict[tuple[RunKey, str], _Armed] = {}
        self._fired: list[_Armed] = []
        self._changed = asyncio.Event()
        clock.watch(self._wake)

    def now(self) -> int:
        """The server's clock."""
        return self._clock.now()

    def drop(self, armed: _Armed) -> None:
        """A fire was acknowledged."""
        if armed in self._fired:
            self._fired.remove(armed)

    @property
    def due(self) -> list[TimerRef]:
        """Timers that fired or would fire now and were not acknowledged."""
        self._run()
        return [one.timer for one in self._fired]

    def next_at(self, classes: Collection[TimerClass]) -> int | None:
        """When the next armed timer of these classes fires, in ms UTC; None: there is none."""
        return min((a.at for a in self._armed.values() if a.timer.timer_class in classes), default=None)

    async def ensure_consumers(self, *, recreate: bool = False) -> None:
        """See Timers."""
        self.faults.check()
        for fired in self._fired if recreate else ():
            fired.leased_until = 0

    async def arm(self, timer: TimerRef, at: int | None = None) -> bool:
        """See Timers."""
        self.faults.check()
        self._run()
        if (timer.key, timer.name) in self._armed:
            return False
        self._armed[timer.key, timer.name] = _Armed(timer, timer.due if at is None else at)
        self._wake()
        return True

    async def cancel(self, key: RunKey, name: str) -> None:
        """See Timers."""
        self.faults.check()
        self._armed.pop((key, name), None)
        self._fired = [f for f in self._fired if (f.timer.key, f.timer.name) != (key, name)]

    async def pull(self, timer_class: TimerClass, batch: int, timeout_s: float) -> Sequence[MemoryFire]:
        """See Timers. `timeout_s` is real time."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            self.faults.check()
            self._run()
            now = self._clock.now()
            found = [f for f in self._fired if f.timer.timer_class == timer_class and f.leased_until <= now][:batch]
            for one in found:
                one.leased_until = now + self._lease_ms
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return [MemoryFire(self, one) for one in found]
            changed = self._changed
            try:
                async with asyncio.timeout(left):  # unlike wait_for it never takes a cancellation for a wake-up
                    await changed.wait()
            except TimeoutError:
                continue

    async def standing(self) -> frozenset[tuple[RunKey, str]]:
        """See Timers."""
        self.faults.check()
        return frozenset({*self._armed, *((f.timer.key, f.timer.name) for f in self._fired)})

    def _run(self) -> None:
        now = self._clock.now()
        for place, armed in list(self._armed.items()):
            if armed.at <= now:
                del self._armed[place]
                armed.fired_at = now
                self._fired.append(armed)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class MemoryNotices:
    """The port Notices over a MemoryStateLog, which is looked at every `look_s` seconds of real time."""

    def __init__(
        self, log: MemoryStateLog, wanted: Collection[str], *, look_s: float = LOOK_S, faults: Faults | None = None
    ) -> None:
        self.faults = faults or Faults()
        self._look_s = look_s
        self._log = log
        self._wanted = frozenset(wanted)
        self._next = 0
        self._told: dict[int, None] = {}

    @property
    def behind(self) -> bool:
        """Whether there are commits that were not looked at, or told and not acknowledged."""
        return self._next < len(self._log.records) or bool(self._told)

    def forget_position(self) -> None:
        """The consumer was deleted: everything is told again."""
        self._next = 0
        self._told.clear()

    async def ensure_consumer(self, *, rewind: bool = False) -> None:
        """See Notices."""
        self.faults.check()
        if rewind and self._told:
            self._next = min(self._told) - 1
            self._told.clear()

    async def pull(self, batch: int, timeout_s: float) -> Sequence[Notice]:
        """See Notices. `timeout_s` is real time."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            self.faults.check()
            records = self._log.stored[self._next : self._next + batch]
            if records:
                self._next += len(records)
                kept = [_notice(r) for r in records if self._matters(r)]
                self._told.update(dict.fromkeys(n.sequence for n in kept))
                return kept
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return []
            await asyncio.sleep(min(left, self._look_s))

    def _matters(self, record: Record) -> bool:
        types = types_of(record.headers)
        return PARENT in record.headers or types is None or not self._wanted.isdisjoint(types)

    async def read(self, notice: Notice) -> Record | None:
        """See Notices."""
        self.faults.check()
        return self._log.records[notice.sequence - 1]

    async def ack(self, notices: Sequence[Notice]) -> None:
        """See Notices."""
        for notice in notices:
            self._told.pop(notice.sequence, None)


def _notice(record: Record) -> Notice:
    return Notice(record.subject, record.sequence, record.headers, record.stored_at)
