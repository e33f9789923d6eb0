"""Tries an agent in memory, without any server: real walker, real scheduler, a clock that is moved by hand.

async with rehearsal(Approval) as stage:
    run = await stage.start(Question(text="send it?"))
    await stage.signal(run, Answer(ok=True), request=stage.requests(run)[0].name)
    assert stage.result(run) == Done(sent=True)
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.heartbeat import MemoryHeartbeat
from waybook.adapters.memory.notes import MemoryNotes, MemoryReplies
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.adapters.memory.timers import MemoryNotices, MemoryTimers
from waybook.agents import Agent, AgentConfig, Event, StartEvent
from waybook.agents.definition import AgentDefinition, define
from waybook.agents.effects import EffectAdapter
from waybook.engine.fold import Stored, fold_all
from waybook.engine.hold import Why, why
from waybook.engine.ports import ANY_LANE, Objects
from waybook.engine.run import Run
from waybook.engine.stall import OpenRequest, open_requests
from waybook.events.codec import Codec
from waybook.events.command import Answer, Command, SignalPayload, StartPayload
from waybook.events.ending import end
from waybook.events.headers import REPLY
from waybook.events.subjects import Issuer, RunKey, command_subject, parse_command_subject, state_subject
from waybook.services.scheduler.following import WANTED
from waybook.services.scheduler.scheduler import Scheduler, SchedulerOptions, SchedulerPorts
from waybook.services.walker.walker import Walker, WalkerOptions, WalkerPorts

E = TypeVar("E", bound=Event)

TENANT = "rehearsal"
QUIET_ROUNDS = 12
PATIENCE_S = 20.0


class NoRest(AssertionError):
    """The agent neither ends nor waits for anything."""


class Refused(AssertionError):
    """A command was refused; `reason` is the stable word."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"refused ({answer.reason}): {answer.text}")
        self.reason = answer.reason


class Stage:
    """Where an agent is tried. Every method that changes something returns when nothing moves any more."""

    def __init__(
        self, agents: Sequence[type[Agent]], provides: Mapping[type, Any], effects: Mapping[str, EffectAdapter]
    ) -> None:
        self.clock = ManualClock()
        self._definitions = {d.engine.agent: d for d in map(define, agents)}
        self._main = next(iter(self._definitions.values()))
        self._state = MemoryStateLog(self.clock)
        self._commands = MemoryCommandQueue(self.clock)
        self._notes = MemoryNotes(self.clock)
        self._replies = MemoryReplies()
        self.objects = MemoryObjects()
        self._provides: dict[type, Any] = {Objects: self.objects, **provides}
        self._effects = effects
        self._codec = Codec()
        self._numbers = itertools.count(1)
        self._walkers: list[tuple[Walker, asyncio.Task[None]]] = []
        self._timers = MemoryTimers(self.clock)
        self._scheduler = Scheduler(
            SchedulerPorts(self._state, MemoryNotices(self._state, WANTED), self._timers, self._commands, self.clock),
            options=SchedulerOptions(pull_s=0.01, exclusive=True),
        )
        self._scheduling: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._commands.ensure_consumers(ANY_LANE)
        self._scheduling = asyncio.create_task(self._scheduler.run())
        self._hire()

    def _hire(self) -> None:
        ports = WalkerPorts(
            state=self._state,
            commands=self._commands,
            replies=self._replies,
            notes=self._notes,
            objects=self.objects,
            heartbeat=MemoryHeartbeat(self._commands, self.clock, lambda: None),
            clock=self.clock,
        )
        options = WalkerOptions(pull_s=0.05, strict=True)
        agents = tuple(self._definitions.values())
        walker = Walker(agents, ports, provides=self._provides, effects=self._effects, options=options)
        self._walkers.append((walker, asyncio.create_task(walker.run())))

    async def close(self) -> None:
        tasks = [task for task in (*(t for _, t in self._walkers), self._scheduling) if task is not None]
        await end(tasks)

    # --- what an author does

    async def start(
        self,
        event: StartEvent,
        *,
        run: str | None = None,
        thread: str | None = None,
        config: AgentConfig | None = None,
        user: str | None = None,
    ) -> str:
        """Starts a run and returns its id."""
        run = run or f"run-{next(self._numbers)}"
        output = self._main.output(event)
        payload = StartPayload(
            event=output.event,
            schema=output.schema,
            body=output.payload,
            thread=thread,
            user=user,
            configuration=msgspec.to_builtins(config) if config is not None else {},
        )
        await self._give(run, "start", payload)
        return run

    async def signal(self, run: str, event: Event, *, request: str | None = None, by: str = "rehearsal") -> None:
        """Hands an event from outside to a run; `request` names the question that it answers. Raises Refused.

        `by`: who gives it; a field `by` of the event says so, whatever stands in it.
        """
        output = self._main.output(event)
        payload = SignalPayload(event=output.event, schema=output.schema, body=output.payload, request=request)
        await self._give(run, "signal", payload, by=by)

    async def approve(self, run: str, *, approval: str | None = None, by: str = "rehearsal") -> None:
        """Says yes to what a run asks for; `approval` names it where several wait. Raises Refused."""
        await self._give(run, "approve", {"approval": approval}, by=by)

    async def reject(
        self, run: str, *, approval: str | None = None, reason: str | None = None, by: str = "rehearsal"
    ) -> None:
        """Says no, as `approve`."""
        await self._give(run, "reject", {"approval": approval, "reason": reason}, by=by)

    async def cancel(self, run: str, reason: str = "the rehearsal") -> None:
        """Cancels a run. Raises Refused."""
        await self._give(run, "cancel", {"reason": reason})

    async def retry(self, run: str) -> None:
        """Takes a failed run up again, as a person does. Raises Refused."""
        await self._give(run, "retry", {})

    async def restart(self, run: str, *, keep: Sequence[str] = ()) -> None:
        """Walks a run from its start event again, as a person does; `keep`: actions whose results stand. Raises Refused."""
        await self._give(run, "restart", {"keep": list(keep), "reason": "the rehearsal"})

    async def pass_time(self, seconds: float) -> None:
        """Moves the clock; what falls due happens."""
        self.clock.advance(round(seconds * 1000))
        await self.rest()

    async def kill(self) -> None:
        """The process dies as by SIGKILL, in the middle of whatever it does; a new one with an empty memory takes over."""
        await end([task for _, task in self._walkers])
        self._walkers.clear()
        self.clock.advance(round(self._commands.ack_wait_s * 1000) + 1)
        self._hire()
        await self.rest()

    # --- what an author looks at

    def run(self, run: str, agent: str | None = None) -> Run:
        """The run as folded from its history. KeyError when there is none."""
        key = RunKey(TENANT, agent or self._main.engine.agent, run)
        records = [r for r in self._state.records if r.subject == state_subject(key)]
        history: list[Stored] = [(self._codec.decode(r.payload, r.headers), r.sequence, "") for r in records]
        folded = fold_all(None, history, key=key)
        if folded is None:
            raise KeyError(run)
        return folded

    def state(self, run: str) -> str:
        """The lifecycle state: running, completed, failed, cancelled, or one of the agent's own."""
        return self.run(run).state

    def events(self, run: str, kind: type[E]) -> list[E]:
        """The run's events of a type, in the order of the log."""
        found = [p for p in self.run(run).log if p.event == kind.__name__]
        return [self._main.decode(p.event, p.schema, p.payload) for p in found]  # type: ignore[misc]

    def steps(self, run: str) -> list[str]:
        """The executions, by step, in the order in which they began."""
        folded = self.run(run)
        return [folded.actions[a].step for a in folded.executions.values()]

    def result(self, run: str) -> Event | None:
        """The stop event, or None."""
        folded = self.run(run)
        if folded.result is None:
            return None
        stop = folded.event(folded.result)
        return self._main.decode(stop.event, stop.schema, stop.payload)

    def requests(self, run: str) -> tuple[OpenRequest, ...]:
        """Questions that nobody answered yet."""
        return open_requests(self._main.engine, self.run(run))

    def why(self, run: str) -> Why:
        """What the run waits for."""
        return why(self._main.engine, self.run(run), scheduler=True)

    def shown(self, run: str) -> list[dict[str, Any]]:
        """What display events were sent, in order."""
        records = [
            msgspec.json.decode(payload) for _, kind, payload in self._notes.traced if kind.startswith("display.")
        ]
        return [r for r in records if r["run"].endswith(f"/{run}") or r["run"].endswith(run)]

    # --- inside

    async def _give(self, run: str, verb: str, payload: Any, *, issuer: Issuer = "cli", by: str = "rehearsal") -> None:
        key = RunKey(TENANT, self._main.engine.agent, run)
        name = f"{verb}-{next(self._numbers)}"
        raw = msgspec.Raw(msgspec.json.encode(payload))
        command = Command(id=name, verb=verb, issued_at=self.clock.now(), actor=by, payload=raw)
        subject = command_subject(key, verb, issuer=issuer)
        headers = {REPLY: f"_INBOX.rehearsal.{name}"}
        await self._commands.publish(subject, msgspec.json.encode(command), command=name, headers=headers)
        await self.rest()
        answers = self._replies.answers.get(f"_INBOX.rehearsal.{name}", [])
        if answers and not (answer := msgspec.json.decode(answers[-1], type=Answer)).ok:
            raise Refused(answer)

    async def rest(self) -> None:
        """Returns when nothing moves any more: no command waits, no body runs."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        quiet, before = 0, -1
        while quiet < QUIET_ROUNDS:
            await asyncio.sleep(0.002)
            for task in (*(t for _, t in self._walkers), self._scheduling):
                if task is not None and task.done() and not task.cancelled() and (error := task.exception()):
                    raise error
            stored = len(self._state.records)
            quiet = quiet + 1 if stored == before and not self._waiting else 0
            before = stored
            if asyncio.get_running_loop().time() > end:
                raise NoRest(f"commands still wait: {self._waiting}")

    @property
    def _waiting(self) -> list[str]:
        """Commands that somebody still has to take up; those for an agent that is not on the stage wait for good."""
        agents = {s: parse_command_subject(s).key.agent for s in self._commands.waiting.values()}
        return [s for s, agent in agents.items() if agent in self._definitions or agent.startswith("@")]

    @property
    def definition(self) -> AgentDefinition:
        """The definition of the agent that is tried."""
        return self._main


@asynccontextmanager
async def rehearsal(
    agent: type[Agent],
    *others: type[Agent],
    provides: Mapping[type, Any] | None = None,
    effects: Mapping[str, EffectAdapter] | None = None,
) -> AsyncIterator[Stage]:
    """A stage for `agent`; `others` are agents that it hands work to. `provides` maps types to objects for the steps.

    `effects` are the adapters of side effects by name, such as `waybook.testing.kit.OtherSide`. `Objects` is provided.
    Raises DefinitionError for an agent that cannot run.
    """
    stage = Stage((agent, *others), provides or {}, effects or {})
    await stage.open()
    try:
        yield stage
    finally:
        await stage.close()
