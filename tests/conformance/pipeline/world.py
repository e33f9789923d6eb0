"""The world of one pass through a case: an empty installation, workers, the clock, messages, what was seen."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import msgspec
from tests.conformance.cases import Case
from tests.conformance.errors import Unsupported
from tests.conformance.patience import NoRest, Patience
from tests.conformance.pipeline import product
from tests.conformance.pipeline.backends import LEASE_MS, Backend
from tests.conformance.pipeline.choices import Choices
from tests.conformance.pipeline.client import Asked, Client
from tests.conformance.pipeline.effects import ScriptedEffects
from tests.conformance.pipeline.gate import Body, Gate
from tests.conformance.pipeline.ghost import Ghost
from tests.conformance.pipeline.history import History
from tests.conformance.pipeline.mailing import MailService
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.models import ScriptedModel
from tests.conformance.pipeline.outside import Tracked, Traffic
from tests.conformance.pipeline.rows import action_rows
from tests.conformance.pipeline.scheduling import Scheduling
from tests.conformance.pipeline.script import Script
from tests.conformance.pipeline.sources import ScriptedKnowledge
from tests.conformance.pipeline.workers import Worker, start_worker

from waybook.engine.fold import fold_all
from waybook.events.codec import Codec
from waybook.events.engine import StepBegan
from waybook.events.headers import COMMIT
from waybook.events.subjects import RunKey, state_subject

PATIENCE_S = 20.0
"""Real time after which something that does not come to rest is an error of the product or the runner."""

Outcome = dict[str, Any]


class Mark(msgspec.Struct, frozen=True):
    """A moment of the case, from which on is counted."""

    versions: dict[RunKey, int]
    works: int
    outcomes: int
    model_calls: int
    buried: int
    mails: int = 0


class World:
    """Everything of one pass. Verbs (`actions`) change it, expectations (`expect`) read it."""

    def __init__(self, case: Case, backend: Backend, choices: Choices) -> None:
        self.case = case
        self.backend = backend
        self.choices = choices
        self.clock = backend.clock
        self.codec = Codec()
        self.definition = product.definition()
        self.gate = Gate()
        self.traffic = Traffic(self.codec, self.clock)
        self.config: dict[str, Any] = dict(case.given.get("config") or {})
        self.settings = product.settings(self.config)
        self.script = Script(case.given, self.settings, self.clock)
        self.models = ScriptedModel(case.given)
        self.sources = ScriptedKnowledge(case.given, self._current_text)
        self.effects = ScriptedEffects(case.given)
        self.mails = MailService(self, case.given)
        self.ghost = Ghost(self)
        self.client = Client(self)
        self.scheduling = Scheduling(self)
        self.go_on = asyncio.Event()
        self.messages: dict[str, Message] = {}
        self.outcomes: list[Outcome] = []
        self.workers: list[Worker] = []
        self.wanted_workers = int(case.given.get("workers", 1))
        self.writers: list[str] | None = None
        self.matrix: list[Outcome] = []
        self.resets = False
        self.began_ms = self.clock.now()
        self.mark = Mark({}, 0, 0, 0, 0)
        self._numbers = itertools.count(1)

    # --- workers

    def staff(self) -> None:
        """So many workers live as the case wants: a supervisor starts a new process for each that died."""
        self.workers = [w for w in self.workers if w.lives]
        while sum(w.works for w in self.workers) < self.wanted_workers:
            name = f"worker-{next(self._numbers)}"
            offset = int(self.case.given.get("clock_offset_s", {}).get("walker", 0)) * 1000
            self.workers.append(
                start_worker(
                    name,
                    self.definition,
                    self.backend.ports,
                    provides=product.provides(self),
                    gate=self.gate,
                    traffic=self.traffic,
                    script=self.script,
                    effects=self.effects,
                    mails=self.mails,
                    offset_ms=offset,
                    arrivals=product.arrivals(self.config),
                )
            )

    def worker_of(self, body: Body) -> Worker:
        return next(w for w in self.workers if w.name == body.worker)

    async def dismiss(self) -> None:
        """The end of the case."""
        problems = [p for w in self.workers if (p := await w.dismiss()) is not None]
        if problems:
            raise problems[0]

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Bodies of the step that sends may run, for the time of the block."""
        self.gate.open(lambda body: body.step == "send")
        try:
            yield
        finally:
            self.gate.close()

    # --- rest

    async def settle(self, until: "asyncio.Event | None" = None) -> None:
        """Returns when nothing moves any more: each command is done, or waits for a gate, a lease, or a worker."""
        patience, quiet = Patience(PATIENCE_S), 0
        while quiet < 3:
            await asyncio.sleep(self.backend.poll_s)
            self._raise_problems()
            quiet = quiet + 1 if not (moving := self.moving()) else 0
            if until is not None and until.is_set():
                return
            if patience.look() and moving:
                workers = [w.standing(self.traffic.pulls[w.name]) for w in self.workers]
                raise NoRest("; ".join([f"still moving: {moving[0]}", *moving[1:], str(patience), *workers]))

    def _raise_problems(self) -> None:
        problem = self.script.problem or self.models.problem
        if problem is not None:
            raise problem
        for worker in self.workers:
            broken = worker.problem()
            if broken is not None:
                raise broken

    def moving(self) -> list[str]:
        """What is still under way, in words."""
        return [
            f"{t.command} {t.subject} ({t.place} {t.worker})" for t in self.traffic.commands.values() if self._moves(t)
        ]

    def _moves(self, tracked: Tracked) -> bool:
        if tracked.place == "settled":
            return False
        if tracked.place == "waiting":
            return self._can_be_taken(tracked)
        worker = next((w for w in self.workers if w.name == tracked.worker), None)
        if worker is None or not worker.works:
            return False
        if self.traffic.paused:
            return False
        return not any(b.command == tracked.command for b in self.gate.waiting() if b.worker == worker.name)

    def _can_be_taken(self, tracked: Tracked) -> bool:
        return tracked.not_before <= self.clock.now() and any(w.works for w in self.workers)

    async def pass_time(self, ms: int) -> None:
        """Moves the clock; leases that nobody renews run out."""
        self.clock.advance(ms)
        now = self.clock.now()
        lapsed = False
        for tracked in self.traffic.commands.values():
            if not self._is_orphan(tracked):
                tracked.leased_at = now
            elif now - tracked.leased_at >= LEASE_MS:
                tracked.place, tracked.worker, lapsed = "waiting", "", True
        if lapsed:
            await self.backend.lapse()

    def _is_orphan(self, tracked: Tracked) -> bool:
        """Held by a worker that is dead or stopped."""
        if tracked.place != "held" or tracked.worker == Ghost.NAME:
            return False  # a ghost keeps its leases
        return not any(w.name == tracked.worker and w.works for w in self.workers)

    async def until_answered(self, asked: Asked) -> None:
        """A command that a walker puts off (its run may be about to start) is answered when its patience is over."""
        for _ in range(120):
            tracked = self.traffic.commands[asked.command]
            if asked.answer is not None or tracked.place != "waiting":
                return
            await self.pass_time(max(1, tracked.not_before - self.clock.now()))
            await self.settle()

    async def lay_off(self) -> None:
        """Workers beyond the wanted number stop gracefully."""
        working = [w for w in self.workers if w.works]
        for worker in working[self.wanted_workers :]:
            await worker.retire()
        self.workers = [w for w in self.workers if w.lives]

    async def permit_sending(self) -> None:
        """From here on the owner's choices and the self-check let everything go that no gate objects to."""
        for worker in self.workers:
            await worker.retire()
        self.config |= {"auto_reply": True, "shadow": False}
        self.settings = product.settings(self.config)
        self.models.full_score = True
        self.staff()

    # --- messages

    def message(self, name: str | None = None) -> Message:
        """The message of that name, or the only one. Unsupported when there is none."""
        if name is not None:
            if name not in self.messages:
                raise Unsupported(f"the case has no message {name}")
            return self.messages[name]
        if len(self.messages) != 1:
            raise Unsupported(f"which of {len(self.messages)} messages is meant?")
        return next(iter(self.messages.values()))

    def concerned(self, action: dict[str, Any]) -> list[Message]:
        """The messages that a verb concerns: the named one, the only one, or all of them with `each`."""
        if action.get("each"):
            return list(self.messages.values())
        return [self.message(action.get("message"))]

    def _current_text(self) -> str:
        """The current message as the context holds it last."""
        return product.current_text(self, self.message())

    def name_of(self, key: RunKey) -> str:
        return next((m.id for m in self.messages.values() if m.key == key), str(key))

    async def hand_over(
        self, message: Message, *, force: bool = False, echoes: int = 0, ack_lost: bool = False
    ) -> str | None:
        """Gives the command that waits for the message: its start, or that its next step goes on. None: there is none.

        `force`: also where nothing is known to be due. `echoes`: so many deliveries more at the same time.
        """
        if not message.stored:
            message.stored = True
            start = product.take_in(self, message.mail)
            return (await product.submit(self, start)).command
        if not (message.hand_over or force):
            return None
        if message.hand_over and message.state == "received":
            await self.client.give(message.key, "move", {"to": "security_check"})
            await self.settle()
        message.hand_over = False
        offers = await self._offers(message.key)
        if offers:
            asked = [await self.client.give(message.key, "exec", o, issuer="relay", actor="relay") for o in offers]
            return asked[-1].command
        name = self.client.next_name("continue")
        self.traffic.echoes[name] = echoes
        if ack_lost:
            self.traffic.lost_acks.add(name)
        await self.client.give(message.key, "continue", issuer="relay", actor="relay", command=name)
        return name

    async def _offers(self, key: RunKey) -> list[dict[str, str]]:
        """Executions of the run that wait for a worker: the relay asks for one for each."""
        run = (await self.history(key)).run
        return [{"step": o.step, "trigger": o.trigger} for o in run.offers.values()] if run is not None else []

    async def redeliver(self, command: str, *, ack_lost: bool = False) -> None:
        """The server delivers a command that is still in the queue once more."""
        tracked = self.traffic.commands[command]
        assert tracked.delivery is not None
        tracked.place, tracked.worker = "waiting", ""
        if ack_lost:
            self.traffic.lost_acks.add(command)
        await tracked.delivery.inner.nak()

    # --- what is stored

    async def history(self, key: RunKey) -> History:
        """The run as it stands in STATE, folded by the product."""
        commits = []
        async for record in self.backend.ports.state.history(state_subject(key)):
            commit = self.codec.decode(record.payload, record.headers, record.subject)
            commits.append((commit, record.sequence, record.headers.get(COMMIT, "")))
        return History(key, tuple(commits), fold_all(None, commits, key=key))

    async def histories(self) -> list[History]:
        """All runs of the agent that have a history, in the order in which they began."""
        keys = [k for k in self.traffic.runs if k.agent == self.definition.engine.agent]
        return [await self.history(k) for k in keys]

    async def rows(self) -> list[dict[str, Any]]:
        """Rows of agent_actions of all runs, oldest first, given ids included."""
        found: list[dict[str, Any]] = []
        for history in await self.histories():
            message = next((m for m in self.messages.values() if m.key == history.key), None)
            names = {action: name for name, action in message.rows.items()} if message is not None else {}
            for row in action_rows(history, self.name_of(history.key)):
                self._name_row(row, names, message)
                found.append(row)
        return sorted(found, key=lambda row: row["sequence"])

    def _name_row(self, row: dict[str, Any], names: dict[str, str], message: Message | None) -> None:
        name = names.get(row.get("action", ""))
        if name is not None and message is not None:
            row["id"] = name
            row["given_as"] = message.given_as.get(name)

    async def set_mark(self) -> None:
        """From here on is counted."""
        self.resets = False
        versions = {h.key: h.version for h in await self.histories()}
        self.mark = Mark(
            versions,
            len(self.gate.works),
            len(self.outcomes),
            len(self.models.calls),
            len(self.traffic.buried),
            len(self.mails.taken),
        )

    async def begun_since_mark(self) -> int:
        """Steps that began since the mark."""
        return sum(len(h.events(StepBegan, self.since(h))) for h in await self.histories())

    def since(self, history: History) -> int:
        return self.mark.versions.get(history.key, 0)

    def hear(self, outcomes: Iterable[Outcome]) -> Sequence[Outcome]:
        """Keeps the answers of a verb, in order."""
        heard = list(outcomes)
        self.outcomes.extend(heard)
        return heard


@asynccontextmanager
async def opened(case: Case, backend: Backend, choices: Choices) -> AsyncIterator[World]:
    """A world that is taken down at the end, whatever happens."""
    async with AsyncExitStack() as stack:
        world = World(case, backend, choices)
        stack.push_async_callback(world.dismiss)
        yield world
