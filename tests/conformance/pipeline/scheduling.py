"""The product's scheduler in a case: what follows from stored commits, and fires at the clock of the case."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.timers import MemoryTimers
from waybook.engine.ports import Clock, CommandQueue, Outgoing, TimerRef
from waybook.engine.run import Timer
from waybook.events.engine import TimerClass
from waybook.events.subjects import RunKey
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.effects import ArmTimer, CancelTimer, Effect, Give, handed_over
from waybook.services.scheduler.fires import Fires
from waybook.services.scheduler.following import follow
from waybook.services.scheduler.hints import NoHints

if TYPE_CHECKING:
    from tests.conformance.pipeline.world import World


TELLING = ("signal", "record")
"""Verbs by which the relay has others learn a fact."""


class _Tracked:
    """COMMANDS as the scheduler sees it, every command tracked."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[bool]:
        queue, traffic = self._world.backend.ports.commands, self._world.traffic
        return [await traffic.publish(queue, m.subject, m.payload, m.command, m.headers) for m in messages]


class _Offset:
    """The scheduler's clock."""

    def __init__(self, clock: ManualClock, ms: int) -> None:
        self._clock = clock
        self._ms = ms

    def now(self) -> int:
        return self._clock.now() + self._ms


class _Unsent(NoHints):
    """Where to look, as the read models of a deployment have it: runs that wait with a send."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def unsent(self, tenant: str) -> Sequence[RunKey]:
        histories = [h for h in await self._world.histories() if h.run is not None]
        return [h.key for h in histories if h.run is not None and h.run.state == "approved"]


class Scheduling:
    """Arms and takes back timers as the log says; hands over what is due when a verb says so.

    Offers are left to the verbs, which ask for a worker themselves.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        offset = int(world.case.given.get("clock_offset_s", {}).get("scheduler", 0)) * 1000
        self._clock: Clock = _Offset(world.clock, offset)
        self._timers = MemoryTimers(world.clock)
        self._doer = Doer(self._timers, cast(CommandQueue, _Tracked(world)), self._clock, _Unsent(world))
        self._read: dict[RunKey, int] = {}

    async def _follow(self) -> bool:
        """Does what the commits since the last time ask for; whether anybody was told anything."""
        told = False
        for history in await self._world.histories():
            effects: list[Effect] = []
            for commit, _, _ in history.commits:
                if commit.version > self._read.get(history.key, 0):
                    effects += follow(history.key, commit, {})
            self._read[history.key] = history.version
            pending = history.run.timers if history.run is not None else {}
            wanted = [
                one
                for one in effects
                if isinstance(one, CancelTimer)
                or (isinstance(one, Give) and one.verb in TELLING)
                or (isinstance(one, ArmTimer) and one.timer.name in pending)
            ]
            told = told or any(isinstance(one, Give) for one in wanted)
            await self._doer.do(wanted)
        return told

    async def follow_all(self) -> None:
        """Does what commits ask for, those of system aggregates included: a kill switch has sends looked at."""
        await self._follow()
        for key in [k for k in self._world.traffic.runs if k.agent == "@policy"]:
            history = await self._world.history(key)
            for commit, _, _ in history.commits:
                if commit.version > self._read.get(key, 0):
                    await self._doer.do(follow(key, commit, {}))
            self._read[key] = history.version

    async def tell(self) -> None:
        """Has others learn what runs tell, and those what these tell in turn."""
        while await self._follow():
            await self._world.settle()

    async def next_due(self) -> int | None:
        """When the next one-shot timer falls due, in ms UTC; retries are for the periodic job."""
        await self._follow()
        waiting = [
            t.due
            for h in await self._world.histories()
            if h.run is not None
            for t in h.run.timers.values()
            if t.timer_class != "retry"
        ]
        return min(waiting, default=None)

    def ref(self, key: RunKey, name: str, timer: Timer) -> TimerRef:
        """A run's timer as the scheduler knows it."""
        return TimerRef(key, name, timer.timer_class, timer.due)

    async def fires_early(self, key: RunKey, name: str, timer_class: TimerClass) -> None:
        """A timer's fire comes now, whatever its time."""
        await self._follow()
        run = (await self._world.history(key)).run
        assert run is not None
        armed = run.timers.get(name)
        ref = TimerRef(key, name, timer_class, armed.due if armed is not None else self._clock.now())
        await self._timers.cancel(key, name)
        await self._timers.arm(ref, self._world.clock.now())
        fires = Fires(timer_class, self._timers, self._doer, self._clock)
        while await fires.step(0.0):
            continue

    async def fire(self, timer_class: TimerClass, *, passes: int = 1) -> None:
        """Hands over what is due of a class; with `passes` as so many schedulers that do not know of each other."""
        await self._follow()
        due = [timer for timer in self._timers.due if timer.timer_class == timer_class]
        fires = Fires(timer_class, self._timers, self._doer, self._clock)
        while await fires.step(0.0):
            continue
        for number in range(1, passes):
            await self._again(due, number)

    async def _again(self, timers: Sequence[TimerRef], number: int) -> None:
        """The same fires, handed over when their ids count as new again."""
        for timer in timers:
            given = handed_over(timer)
            command = f"{given.id}#{number}"
            await self._world.client.give(
                given.key, given.verb, given.payload, issuer="relay", actor="relay", command=command
            )
