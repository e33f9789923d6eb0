"""A walker and schedulers of the flaky agent on ports in memory; the clock is moved by hand."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
from tests.unit.scheduler.flaky import Flaky, Side

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.heartbeat import MemoryHeartbeat
from waybook.adapters.memory.notes import MemoryNotes, MemoryReplies
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.adapters.memory.timers import MemoryNotices, MemoryTimers
from waybook.agents import Agent
from waybook.agents.definition import define
from waybook.engine.fold import fold_all
from waybook.engine.hooks import Details, Hook, ignore
from waybook.engine.ports import ANY_LANE, Clock
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Command, StartPayload
from waybook.events.engine import EngineEvent
from waybook.events.subjects import RunKey, command_subject, state_subject
from waybook.services.scheduler.following import WANTED
from waybook.services.scheduler.hints import Hints, NoHints
from waybook.services.scheduler.recurring import Planned
from waybook.services.scheduler.scheduler import Scheduler, SchedulerOptions, SchedulerPorts
from waybook.services.walker.walker import Walker, WalkerOptions, WalkerPorts

START_MS = 1_800_000_000_000
"""A point of the five-minute grid."""

FIVE_MINUTES_MS = 300_000
KEY = RunKey("main", "flaky", "r1")
CODEC = Codec()


class Killed(Exception):
    """The process ended here."""


class Fuse:
    """Blows at the `at`-th step that goes through it; 0 never."""

    def __init__(self, at: int = 0) -> None:
        self._at = at
        self.steps = 0
        self.blown = False

    def step(self) -> None:
        if self.blown:
            raise Killed
        self.steps += 1
        if self.steps == self._at:
            self.blown = True
            raise Killed


class Behind:
    """A port behind a fuse, which may blow before each call does anything, and after it did before anybody hears."""

    def __init__(self, port: Any, fuse: Fuse) -> None:
        self._port = port
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._port, name)
        if not callable(inner):
            return inner

        async def call(*arguments: Any, **options: Any) -> Any:
            if name == "pull":  # most bring nothing
                found = await inner(*arguments, **options)
                if found:
                    self._fuse.step()
                return [Behind(one, self._fuse) if hasattr(one, "ack") else one for one in found]
            self._fuse.step()
            answer = await inner(*arguments, **options)
            self._fuse.step()
            return answer

        return call


class Plant:
    """Everything in memory; `side` is asked by the middle step."""

    def __init__(self, side: Callable[[ManualClock], Side] = lambda clock: Side(now=clock.now)) -> None:
        self.clock = ManualClock(START_MS)
        self.side = side(self.clock)
        self.state = MemoryStateLog(self.clock)
        self.commands = MemoryCommandQueue(self.clock)
        self.timers = MemoryTimers(self.clock)
        self.notices = MemoryNotices(self.state, WANTED)
        self.told: list[Details] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def walk(
        self,
        *agents: type[Agent],
        clock: Clock | None = None,
        provides: dict[type, Any] | None = None,
        hook: Hook = ignore,
        **options: Any,
    ) -> Walker:
        """A walker at work, of the flaky agent unless others are named; `clock` may be wrong."""
        await self.commands.ensure_consumers(ANY_LANE)
        ports = WalkerPorts(
            state=self.state,
            commands=self.commands,
            replies=MemoryReplies(),
            notes=MemoryNotes(self.clock),
            objects=MemoryObjects(),
            heartbeat=MemoryHeartbeat(self.commands, self.clock, lambda: None),
            clock=clock or self.clock,
        )
        chosen = WalkerOptions(pull_s=0.02, strict=True, **options)
        walker = Walker(
            [define(agent) for agent in agents or (Flaky,)],
            ports,
            provides={Side: self.side, **(provides or {})},
            options=chosen,
            hook=hook,
        )
        self._tasks.append(asyncio.create_task(walker.run()))
        return walker

    def schedule(
        self, *, fuse: Fuse | None = None, clock: Clock | None = None, hints: Hints | None = None,
        plans: Sequence[Planned] = (), **options: Any,
    ) -> asyncio.Task[None]:  # fmt: skip
        """A scheduler at work; what broke it is its task's."""
        fuse = fuse or Fuse()
        ports = SchedulerPorts(
            state=self.state,
            notices=cast(MemoryNotices, Behind(self.notices, fuse)),
            timers=cast(MemoryTimers, Behind(self.timers, fuse)),
            commands=cast(MemoryCommandQueue, Behind(self.commands, fuse)),
            clock=clock or self.clock,
            hints=hints or NoHints(),
        )
        chosen = SchedulerOptions(**{"pull_s": 0.02, "exclusive": True, **options})
        task = asyncio.create_task(Scheduler(ports, options=chosen, hook=self.told.append, plans=plans).run())
        self._tasks.append(task)
        return task

    async def start(self, *keys: RunKey) -> None:
        for key in keys or (KEY,):
            await self.give("start", StartPayload(event="Go", body=msgspec.Raw(b"{}")), key)

    async def give(self, verb: str, payload: object = None, key: RunKey = KEY) -> None:
        """A person's command."""
        raw = msgspec.Raw(msgspec.json.encode(payload))
        command = Command(id=f"{key.run}-{verb}", verb=verb, issued_at=self.clock.now(), actor="p", payload=raw)
        subject = command_subject(key, verb, issuer="cli")
        await self.commands.publish(subject, msgspec.json.encode(command), command=command.id)

    def run(self, key: RunKey = KEY) -> Run | None:
        mine = [r for r in self.state.records if r.subject == state_subject(key)]
        return fold_all(None, [(CODEC.decode(r.payload), r.sequence, "") for r in mine], key=key)

    def events(self, key: RunKey = KEY) -> list[EngineEvent]:
        mine = [r for r in self.state.records if r.subject == state_subject(key)]
        return [event for record in mine for event in CODEC.decode(record.payload).events]

    def stands(self, key: RunKey = KEY) -> str:
        run = self.run(key)
        return run.state if run is not None else "-"

    async def until(self, holds: Callable[[], bool], *, pass_ms: int = 0, within_s: float = 10.0) -> None:
        """Returns as soon as `holds`; time passes by `pass_ms` at each look."""
        async with asyncio.timeout(within_s):
            while not holds():
                if pass_ms:
                    self.clock.advance(pass_ms)
                await asyncio.sleep(0.002)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
