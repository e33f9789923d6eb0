"""The world of one pass through a dispatcher case: an empty installation, workers, the clock, runs, what was seen."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
from tests.conformance.cases import Case
from tests.conformance.dispatcher.bodies import Bodies, attempt_now
from tests.conformance.dispatcher.relay import Relay
from tests.conformance.dispatcher.traffic import DispatcherTraffic
from tests.conformance.dispatcher.workflow import Built, Workflow, build
from tests.conformance.patience import NoRest, Patience
from tests.conformance.pipeline.backends import LEASE_MS, Backend
from tests.conformance.pipeline.fuse import Fuse, FusedHeartbeat, fused
from tests.conformance.pipeline.history import History
from tests.conformance.pipeline.outside import Tracked
from tests.conformance.pipeline.workers import Worker

from waybook.agents.definition import AgentDefinition, define
from waybook.engine.fold import fold_all
from waybook.events.codec import Codec
from waybook.events.command import Answer, Command
from waybook.events.headers import COMMIT, REPLY
from waybook.events.subjects import Issuer, RunKey, command_subject, state_subject
from waybook.services.walker.walker import Walker, WalkerOptions

PATIENCE_S = 20.0
TENANT = "case"
THREAD = "thread-1"
MAIN = "Workflow"


class Given(msgspec.Struct):
    """A publication: the command, its subject and bytes, and the event that it carries."""

    command: str
    event: str
    subject: str
    payload: bytes


def workflows(case: Case) -> dict[str, Workflow]:
    """The case's own workflow and those that it delegates to."""
    keys = tuple(k for item in case.publish for k in item.get("change_config", {}))
    found = {}
    for name, agent in case.agents.items():
        found[name] = msgspec.convert({**agent, "name": name}, Workflow)
    found[MAIN] = Workflow(
        MAIN, case.events, case.steps, case.config, case.config_type, case.config_invalid, keys,
        case.duplicate_event_classes,
    )  # fmt: skip
    return found


class World:
    """Everything of one pass."""

    def __init__(
        self, case: Case, backend: Backend, *, workers: int = 1, chance: Random | None = None, tenant: str = TENANT
    ) -> None:
        self.case = case
        self.tenant = tenant
        self.backend = backend
        self.clock = backend.clock
        self.codec = Codec()
        self.chance = chance
        self.bodies = Bodies(chance)
        self.traffic = DispatcherTraffic(self.codec, self.clock)
        self.traffic.prepare(chance)
        self.flows = workflows(case)
        self.built: dict[str, Built] = {}
        foreign: dict[str, type] = {}
        for name, flow in self.flows.items():
            self.built[name] = build(flow, attempt_now, foreign)
            starts = {n: c for n, c in self.built[name].classes.items() if flow.events[n].get("start")}
            foreign.update(starts)
        self.definitions: dict[str, AgentDefinition] = {}
        self.relay = Relay(self)
        self.workers: list[Worker] = []
        self.wanted = workers
        self.slots: int | None = None
        self.started = False
        self.echoes = 0
        self.run = "r1"
        self.runs: list[str] = []
        self.stored_config = dict(case.config)
        self.deadline_s: float | None = None
        self.given: list[Given] = []
        self.rejected: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.repeated: list[str] = []
        self._heard: set[str] = set()
        self._numbers = itertools.count(1)

    def define(self) -> None:
        """Raises DefinitionError."""
        self.definitions = {name: define(built.agent) for name, built in self.built.items()}

    @property
    def key(self) -> RunKey:
        return self.key_of(self.run)

    def key_of(self, run: str) -> RunKey:
        return RunKey(self.tenant, self.definitions[MAIN].engine.agent, run)

    def config_of(self, agent: str) -> dict[str, Any]:
        """The configuration that is stored for another agent of the case."""
        return next((flow.config for name, flow in self.flows.items() if name.lower() == agent), {})

    # --- workers

    def staff(self) -> None:
        """So many workers live as the case wants."""
        self.started = True
        self.workers = [w for w in self.workers if w.lives]
        while len(self.workers) < self.wanted:
            self.workers.append(self._hire(f"worker-{next(self._numbers)}"))

    def _hire(self, name: str) -> Worker:
        worker: list[Worker] = []
        fuse = Fuse(lambda: worker[0].bury())
        behind = fused(self.backend.ports, fuse, self.traffic, name)
        agents = [self._gated(definition, fuse) for definition in self.definitions.values()]
        options = WalkerOptions(name=name, pull_s=0.5, strict=True)
        if self.chance is not None:  # few slots, so that the commands are spread over the workers
            few = self.chance.randint(1, 3)
            options = msgspec.structs.replace(options, slots=few, ctl_slots=self.chance.randint(1, 3), pull_s=0.01)
        if self.slots is not None:
            options = msgspec.structs.replace(options, executions=self.slots)
        walker = Walker(agents, behind, options=options)
        assert isinstance(behind.heartbeat, FusedHeartbeat)
        worker.append(Worker(name, walker, fuse, behind.heartbeat))
        return worker[0]

    def _gated(self, definition: AgentDefinition, fuse: Fuse) -> AgentDefinition:
        bodies = {
            step: self.bodies.wrapped(body, lambda: not fuse.blown, fuse.blow)
            for step, body in definition.bodies.items()
        }
        return msgspec.structs.replace(definition, bodies=bodies)

    async def replace_workers(self) -> None:
        """Every process is replaced; what the old ones held is delivered again when their leases have run out."""
        for worker in self.workers:
            worker.kill()
        for _ in range(5):  # their pulls end before anything else happens
            await asyncio.sleep(0)
        if any(t.place == "held" for t in self.traffic.commands.values()):
            await self.pass_time(LEASE_MS)
        self.staff()

    async def dismiss(self) -> None:
        problems = [p for w in self.workers if (p := await w.dismiss()) is not None]
        if problems:
            raise problems[0]

    # --- rest and time

    async def settle(self) -> None:
        """Returns when nothing moves any more, offers and other agents included."""
        if not self.started:
            return
        while True:
            await self._rest()
            if not await self.relay.follow():
                break
        self._listen()

    async def _rest(self) -> None:
        patience, quiet = Patience(PATIENCE_S), 0
        while quiet < 4:
            await asyncio.sleep(self.backend.poll_s)
            for worker in self.workers:
                problem = worker.problem()
                if problem is not None:
                    raise problem
            moving = self._moving()
            quiet = quiet + 1 if not moving else 0
            if patience.look() and moving:
                workers = [w.standing(self.traffic.pulls[w.name]) for w in self.workers]
                raise NoRest("; ".join([f"still moving: {moving[0]}", *moving[1:], str(patience), *workers]))

    def _moving(self) -> list[str]:
        if not self.traffic.may_append.is_set():
            return [f"body {r.step}" for r in self.bodies.running if r.lives() and not r.waits]
        if self.traffic.under_way:
            return [f"{self.traffic.under_way} appends"]
        found = [f"body {r.step}" for r in self.bodies.running if r.lives() and not r.waits]
        return found + [
            f"{t.command} {t.subject} ({t.place})" for t in self.traffic.commands.values() if self._moves(t)
        ]

    def _moves(self, tracked: Tracked) -> bool:
        if tracked.place == "settled":
            return False
        if tracked.place == "waiting":
            return tracked.not_before <= self.clock.now() and any(w.works for w in self.workers)
        if not any(w.name == tracked.worker and w.works for w in self.workers):
            return False
        waiting = {self.traffic.command_of(r.run, r.action) for r in self.bodies.running if r.lives() and r.waits}
        return tracked.command not in waiting

    async def pass_time(self, ms: int) -> None:
        """Moves the clock: timers fire, leases that nobody renews run out."""
        self.clock.advance(ms)
        lapsed = False
        for tracked in self.traffic.commands.values():
            held_by_dead = tracked.place == "held" and not any(
                w.name == tracked.worker and w.works for w in self.workers
            )
            if held_by_dead and ms >= LEASE_MS:
                tracked.place, tracked.worker, lapsed = "waiting", "", True
        if lapsed:
            await self.backend.lapse()

    # --- commands

    async def give(
        self,
        key: RunKey,
        verb: str,
        payload: Any,
        *,
        issuer: Issuer = "gw",
        command: str | None = None,
        event: str = "",
    ) -> Given:
        """Stores a command."""
        name = command or f"{self.tenant}-{verb}-{next(self._numbers)}"
        body = Command(
            id=name,
            verb=verb,
            issued_at=self.clock.now(),
            actor="case",
            payload=msgspec.Raw(msgspec.json.encode(payload)),
        )
        given = Given(name, event, command_subject(key, verb, issuer=issuer), msgspec.json.encode(body))
        if issuer == "gw":
            self.given.append(given)
        if self.echoes:
            self.traffic.echoes[name] = self.echoes
        await self.publish(given, name)
        return given

    async def publish(self, given: Given, message: str) -> bool:
        """Stores the command of a publication under a message id; False when that was stored before."""
        headers = {REPLY: f"_INBOX.case.{message}"}
        return await self.traffic.publish(self.backend.ports.commands, given.subject, given.payload, message, headers)

    async def repeat(self, given: Given) -> None:
        """The command is stored once more, under another message id: as after the duplicate window."""
        self.repeated.append(given.command)
        name = f"{given.command}-again-{len(self.repeated)}"
        tracked = self.traffic.commands[given.command]
        tracked.place, tracked.worker = "waiting", ""
        await self.backend.ports.commands.publish(given.subject, given.payload, command=name)

    async def stop_all(self) -> None:
        """No worker takes anything any more."""
        for worker in self.workers:
            await worker.retire()
        self.workers = []
        self.started = False

    def _listen(self) -> None:
        """Reads the answers that came: refusals by run."""
        for given in self.given:
            raw = self.traffic.answers.get(f"_INBOX.case.{given.command}")
            if raw is None or given.command in self._heard:
                continue
            self._heard.add(given.command)
            answer = msgspec.json.decode(raw, type=Answer)
            if not answer.ok and given.event:
                reason = REASONS.get(answer.reason or "", answer.reason)
                self.rejected[answer.run].append({"event": given.event, "reason": reason})

    # --- what is stored

    async def history(self, key: RunKey) -> History:
        """The run as it stands in STATE, folded by the product."""
        commits = []
        async for record in self.backend.ports.state.history(state_subject(key)):
            commit = self.codec.decode(record.payload, record.headers, record.subject)
            commits.append((commit, record.sequence, record.headers.get(COMMIT, "")))
        return History(key, tuple(commits), fold_all(None, commits, key=key))

    def notes(self, run: str) -> list[dict[str, Any]]:
        """What TRACE says of a run of the case."""
        return self.notes_of(self.key_of(run))

    def notes_of(self, key: RunKey) -> list[dict[str, Any]]:
        records = [msgspec.json.decode(payload) for _, payload in self.traffic.traces]
        return [r for r in records if r.get("run") == str(key)]


REASONS: Mapping[str, str] = {
    "terminal": "run_finished",
    "message_not_found": "unknown_run",
    "already_decided": "request_already_answered",
}
"""Reasons of refusals, as the cases name them."""


@asynccontextmanager
async def opened(
    case: Case, backend: Backend, *, workers: int = 1, chance: Random | None = None
) -> AsyncIterator[World]:
    """A world that is taken down at the end, whatever happens.

    `chance` mixes when bodies run and commits are stored among `workers`.
    """
    world = World(case, backend, workers=workers, chance=chance)
    try:
        yield world
    finally:
        await world.dismiss()
