"""Walkers on ports in memory: one queue, one log, one clock that is moved by hand."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.heartbeat import MemoryHeartbeat
from waybook.adapters.memory.notes import MemoryNotes, MemoryReplies
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.agents import Agent, Event, StartEvent, StopEvent, step
from waybook.agents.definition import define
from waybook.agents.effects import EffectAdapter
from waybook.engine.fold import fold_all
from waybook.engine.hooks import Details
from waybook.engine.ports import ANY_LANE
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Answer, Command, StartPayload
from waybook.events.engine import EngineEvent
from waybook.events.headers import REPLY
from waybook.events.subjects import Issuer, RunKey, command_subject, state_subject
from waybook.services.walker.definitions import lanes
from waybook.services.walker.walker import Walker, WalkerOptions, WalkerPorts

KEY = RunKey("t", "gated", "r")
LEASE_MS = 60_000


class Go(StartEvent, frozen=True, kw_only=True):
    """The run begins."""


class Half(Event, frozen=True, kw_only=True):
    """The first step is done."""


class Done(StopEvent, frozen=True, kw_only=True):
    """The run is over."""


class Gates:
    """Bodies stop at the gate of their step until it is opened; who came and went is noted, and how many at once."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.passed: list[str] = []
        self.most = 0
        self._inside = 0
        self._open = {"first": asyncio.Event(), "second": asyncio.Event()}

    async def at(self, name: str) -> None:
        self.entered.append(name)
        self._inside += 1
        self.most = max(self.most, self._inside)
        try:
            await asyncio.sleep(0)
            await self._open[name].wait()
        finally:
            self._inside -= 1
        self.passed.append(name)

    def open(self, *names: str) -> None:
        for name in names:
            self._open[name].set()


class Gated(Agent):
    """Two steps, each behind a gate."""

    name = "gated"

    @step
    async def first(self, go: Go, gates: Gates) -> Half:
        await gates.at("first")
        return Half()

    @step
    async def second(self, half: Half, gates: Gates) -> Done:
        await gates.at("second")
        return Done()


class Process:
    """A walker with its own gates and heartbeat, as in a process of its own."""

    def __init__(
        self,
        office: "Office",
        name: str,
        agent: type[Agent],
        older: Sequence[type[Agent]],
        options: dict[str, Any],
        effects: Mapping[str, EffectAdapter],
    ) -> None:
        self.gates = Gates()
        self.alive = True
        self.heartbeat = MemoryHeartbeat(office.commands, office.clock, self._lost)
        ports = WalkerPorts(
            state=office.state,
            commands=office.commands,
            replies=office.replies,
            notes=office.notes,
            objects=office.objects,
            heartbeat=self.heartbeat,
            clock=office.clock,
        )
        current, past = define(agent), [define(one) for one in older]
        self.lanes = lanes([current, *past])
        names = tuple(spec.name for spec in self.lanes)
        chosen = WalkerOptions(**{"name": name, "pull_s": 0.02, "strict": True, "lane_consumers": names, **options})
        self.told: list[Details] = []
        self.walker = Walker(
            [current],
            ports,
            older=past,
            provides={Gates: self.gates},
            effects=effects,
            options=chosen,
            hook=self.told.append,
        )
        self._running: asyncio.Task[None] | None = None

    def _lost(self) -> None:
        if self.alive:
            self.walker.claims_lost()

    def begin(self) -> None:
        self._running = asyncio.create_task(self.walker.run())

    async def stop(self) -> None:
        assert self._running is not None
        await self.walker.stop()
        await self._running

    async def kill(self) -> None:
        assert self._running is not None
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        self.alive = False
        self.heartbeat.lose()


class Office:
    """The outside that processes share."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.state = MemoryStateLog(self.clock)
        self.commands = MemoryCommandQueue(self.clock, ack_wait_s=LEASE_MS / 1000)
        self.notes = MemoryNotes(self.clock)
        self.replies = MemoryReplies()
        self.objects = MemoryObjects()
        self.processes: list[Process] = []

    async def process(
        self,
        name: str,
        agent: type[Agent] = Gated,
        *,
        older: Sequence[type[Agent]] = (),
        effects: Mapping[str, EffectAdapter] = {},
        **options: Any,
    ) -> Process:
        """A walker of `agent`, whose token is that of KEY; `options` as in WalkerOptions."""
        process = Process(self, name, agent, older, options, effects)
        await self.commands.ensure_consumers([*ANY_LANE, *process.lanes])
        self.processes.append(process)
        process.begin()
        return process

    async def start(self, id: str = "k1", key: RunKey = KEY) -> None:
        await self.give("start", StartPayload(event="Go", body=msgspec.Raw(b"{}")), id=id, key=key)

    async def give(
        self, verb: str, payload: object = None, *, id: str, key: RunKey = KEY, issuer: Issuer = "cli"
    ) -> None:
        """Publishes a command, with an inbox for its answer that is named after it."""
        command = Command(
            id=id,
            verb=verb,
            issued_at=self.clock.now(),
            actor="p",
            payload=msgspec.Raw(msgspec.json.encode(payload)),
        )
        subject = command_subject(key, verb, issuer=issuer)
        headers = {REPLY: f"_INBOX.{id}"}
        await self.commands.publish(subject, msgspec.json.encode(command), command=id, headers=headers)

    def answer(self, id: str) -> Answer:
        """What was said to that command last."""
        return msgspec.json.decode(self.replies.answers[f"_INBOX.{id}"][-1], type=Answer)

    def events(self, key: RunKey = KEY) -> list[EngineEvent]:
        codec = Codec()
        mine = [r for r in self.state.records if r.subject == state_subject(key)]
        return [event for record in mine for event in codec.decode(record.payload).events]

    def types(self) -> list[str]:
        return [type(event).__name__ for event in self.events()]

    def run(self, key: RunKey = KEY) -> Run | None:
        codec = Codec()
        mine = [r for r in self.state.records if r.subject == state_subject(key)]
        return fold_all(None, [(codec.decode(r.payload), r.sequence, "") for r in mine], key=key)

    async def lapse(self) -> None:
        """A lease's time passes; who beats in time keeps what it holds."""
        for _ in range(5):
            self.clock.advance(LEASE_MS // 4)
            await asyncio.sleep(0)

    async def close(self) -> None:
        for process in self.processes:
            await process.kill()


async def until(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    """Returns as soon as `holds`; fails after `within_s`."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110  what is waited for has no event of its own
            await asyncio.sleep(0.002)
