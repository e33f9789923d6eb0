"""One walk of the crash kit: processes after one another in one world, until nothing moves any more."""

import asyncio
import glob
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from waybook.agents.definition import AgentDefinition
from waybook.agents.effects import EffectAdapter
from waybook.engine.run import Run
from waybook.events.engine import TimerClass
from waybook.events.errors import TerminalError
from waybook.events.typed import StartEvent
from waybook.testing.faults import Boundary
from waybook.testing.kit.disturbance import Disturbance
from waybook.testing.kit.process import Process
from waybook.testing.kit.say import Say
from waybook.testing.kit.world import LEASE_MS, World

TURNS = 25
"""Turns of the loop after which a process that does nothing is taken to wait."""

MOST_LEASES = 12
MOST_TIMERS = 30
FIRED_BY_ITSELF: tuple[TimerClass, ...] = ("retry", "wait", "send")
"""Classes of timers that fire before the next word is said; the others are what a run waits for a person with."""


class Stuck(TerminalError):
    """A walk does not come to rest."""


class Place(NamedTuple):
    """Where a process dies: at a boundary, with a subject or name, reached for the `nth` time, from 1."""

    boundary: Boundary
    where: str
    nth: int

    def __str__(self) -> str:
        return f"{self.boundary} {self.where} ({self.nth})"


class Plan(NamedTuple):
    """What is walked. `provides` is made anew for each process, `effects` for each walk: it is the outside world."""

    agents: Sequence[AgentDefinition]
    start: StartEvent
    then: Sequence[Say]
    thread: str | None
    provides: Callable[[], Mapping[type, Any]]
    effects: Callable[[], Mapping[str, EffectAdapter]]
    within_s: float


class Walk:
    """One run from its start until it rests after the last word."""

    def __init__(self, plan: Plan, place: Place | None, disturbance: Disturbance) -> None:
        self._plan = plan
        self._place = place
        self.world = World(plan.agents[0], disturbance)
        self.effects = plan.effects()
        self.passed: list[tuple[Boundary, str]] = []
        self.killed = False
        self._process = self._new_process()

    def _new_process(self) -> Process:
        return Process(self.world, self._plan.agents, self._plan.provides(), self.effects)

    async def go(self) -> Run | None:
        """Walks; returns the run as it rests. Raises Stuck, and what broke a walker."""
        if self._place is not None:
            boundary, where, nth = self._place
            self._process.faults.arm(boundary, self._process.strike, nth=nth, where=glob.escape(where))
        await self._process.begin()
        try:
            await self.world.start(self._plan.start, self._plan.thread)
            await self._rest()
            for say in self._plan.then:
                await self.world.say(say)
                await self._rest()
        finally:
            self.passed = self._process.faults.passed
            await self._process.end()
        return self.world.run()

    async def _rest(self) -> None:
        """Until nothing moves and no timer fires by itself any more."""
        for _ in range(MOST_TIMERS):
            await self._quiet()
            run = self.world.run()
            due = [t.due for t in run.timers.values() if t.timer_class in FIRED_BY_ITSELF] if run is not None else []
            if not due:
                return
            # A timer that is overdue was armed anew: it came early by a clock that is wrong.
            when = max(min(due), self.world.timers.next_at(FIRED_BY_ITSELF) or 0)
            self.world.clock.advance(max(0, when - self.world.clock.now()))
        raise Stuck(f"more than {MOST_TIMERS} timers fired one after the other")

    async def _quiet(self) -> None:
        moves = 0
        while True:
            before = self._progress()
            await self._turns()
            if self._process.killed.is_set():
                await self._succeed()
            elif self._process.broken is not None:
                raise self._process.broken
            elif self._progress() != before:
                moves = 0
            elif not self.world.moving:
                return
            elif moves == MOST_LEASES:
                raise Stuck(f"after {MOST_LEASES // 4} leases there still wait: {', '.join(self.world.moving)}")
            else:
                moves += 1
                self.world.clock.advance(LEASE_MS // 4)
                self._process.look_again()

    async def _turns(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        end = asyncio.get_running_loop().time() + self._plan.within_s
        while self._process.busy and not self._process.killed.is_set():
            if asyncio.get_running_loop().time() > end:
                raise Stuck(f"something was still under way after {self._plan.within_s:g} s")
            await asyncio.sleep(0.001)

    def _progress(self) -> tuple[int, int]:
        return len(self.world.state.records), len(self._process.faults.passed)

    async def _succeed(self) -> None:
        """Another process takes the place of the one that died, with nothing but what is stored."""
        self.killed = True
        await self._process.end()
        self._process = self._new_process()
        await self._process.begin()
