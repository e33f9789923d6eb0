"""The walker: pulls commands, gives each to its run's actor, answers, and acknowledges last."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from waybook.agents.context import StepContext
from waybook.agents.definition import AgentDefinition
from waybook.agents.errors import DefinitionError
from waybook.engine.inputs import Accepted, Delivered, Nothing, Outcome, Refused
from waybook.engine.lease import Ack, Again, Bury, Silent, settle
from waybook.engine.ports import (
    Clock,
    CommandQueue,
    Delivery,
    Heartbeat,
    Notes,
    Objects,
    PortError,
    Replies,
    StateLog,
)
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Answer, Command, StartPayload
from waybook.events.engine import ThreadJoined
from waybook.events.errors import InvalidInput
from waybook.events.headers import REASON, REPLY
from waybook.events.subjects import (
    RUN_TOKEN,
    RunKey,
    check_token,
    command_subject,
    digest_token,
    parse_command_subject,
)
from waybook.services.walker.actor import Item, RunActor
from waybook.services.walker.execution import Executor
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.requests import read_command, read_request

log = logging.getLogger(__name__)

COALESCE_S = 0.002
"""How long a pull waits for more slots while most are taken: one pull for many is cheaper than many pulls."""

DECIDE_MS = 600_000
"""How long a lease is renewed while its command waits for a decision or a server, beyond any step's deadline."""

ALL_AT_ONCE = 1_000_000
"""How many executions one commit may begin, as long as nothing answers `StepOffered`."""


class _Pulled(msgspec.Struct, frozen=True):
    """By which consumer a delivery came, and how often all claims had been lost by then."""

    consumer: str
    epoch: int


class WalkerPorts(msgspec.Struct, frozen=True):
    """The outside of a walker."""

    state: StateLog
    commands: CommandQueue
    replies: Replies
    notes: Notes
    objects: Objects
    heartbeat: Heartbeat
    clock: Clock


class WalkerOptions(msgspec.Struct, frozen=True):
    """`slots`: commands walked at once. `ctl_slots` are kept beside them for decisions. `pull_s`: one pull's patience.

    `strict`: a run actor that breaks stops the walker, instead of leaving its command to be redelivered.
    """

    name: str = "walker"
    slots: int = 64
    ctl_slots: int = 16
    pull_s: float = 1.0
    stop_s: float = 10.0
    strict: bool = False
    new_consumer: str = "new_any"
    ctl_consumer: str = "ctl_any"


class Walker:
    """Walks the runs of `agents`. `provides` maps types that steps ask for to the objects they get.

    `run()` works until `stop()`; cancelling it instead leaves everything as a killed process would. Raises
    DefinitionError at once when a step asks for a type that is not provided. A run actor that breaks for a reason
    of the program's own gives up its run; its commands come again after their lease.
    """

    def __init__(
        self,
        agents: Sequence[AgentDefinition],
        ports: WalkerPorts,
        *,
        provides: Mapping[type, Any] | None = None,
        options: WalkerOptions | None = None,
        codec: Codec | None = None,
    ) -> None:
        self._agents = {a.engine.agent: a for a in agents}
        self._ports = ports
        self._options = options or WalkerOptions()
        _check_provided(agents, provides or {})
        self.lifecycle = Lifecycle(ports.state, codec or Codec(), ports.clock, self._options.name)
        self.executor = Executor(provides or {}, ports.clock)
        self._actors: dict[RunKey, RunActor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._crashed: BaseException | None = None
        self._taken = {self._options.new_consumer: 0, self._options.ctl_consumer: 0}
        self._pulled: dict[int, _Pulled] = {}
        self._epoch = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._freed = asyncio.Event()
        self.problem: PortError | None = None

    # --- taking commands

    async def run(self) -> None:
        """Takes and walks commands until `stop()`. Raises what broke a run actor for a reason of the program's own."""
        options = self._options
        self._loop = asyncio.get_running_loop()
        pulls = [
            asyncio.create_task(self._pull(options.new_consumer, options.slots)),
            asyncio.create_task(self._pull(options.ctl_consumer, options.ctl_slots)),
        ]
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([*pulls, stopped], return_when=asyncio.FIRST_COMPLETED)
            await self._wind_down(pulls)
        finally:
            for task in (*pulls, stopped, *self._tasks):
                task.cancel()
            await asyncio.gather(*pulls, stopped, *self._tasks, return_exceptions=True)
        if self._crashed is not None:
            raise self._crashed

    async def stop(self) -> None:
        """Asks for a graceful stop: nothing new is taken, open actions are released, deliveries given back."""
        self._stopping.set()

    async def _wind_down(self, pulls: Sequence[asyncio.Task[None]]) -> None:
        for task in pulls:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
        if self._crashed is not None:
            return
        self._stopping.set()
        await asyncio.gather(*pulls)
        actors = list(self._actors.values())
        for actor in actors:
            actor.release()
        async with asyncio.timeout(self._options.stop_s):
            while self._tasks:
                await asyncio.wait(list(self._tasks))
        for actor in actors:
            await actor.give_back()

    async def _pull(self, consumer: str, slots: int) -> None:
        while not self._stopping.is_set():
            if 0 < slots - self._taken[consumer] < slots // 4:
                await asyncio.sleep(COALESCE_S)
            free = slots - self._taken[consumer]
            if free <= 0 or self.problem is not None:
                self._freed.clear()
                await _first(self._freed.wait(), self._stopping.wait(), timeout=0.5)
                if self.problem is not None:
                    await self._probe()
                continue
            try:
                deliveries = await self._ports.commands.pull(consumer, free, self._options.pull_s)
            except PortError as error:
                await self.unhealthy(error)
                await _first(self._stopping.wait(), timeout=0.5)
                continue
            for delivery in deliveries:
                self._taken[consumer] += 1
                self._pulled[id(delivery)] = _Pulled(consumer, self._epoch)
                self._ports.heartbeat.hold(delivery.ack_subject, self._ports.clock.now() + DECIDE_MS)
                self.spawn(self._receive(delivery))
            await asyncio.sleep(0)

    async def _probe(self) -> None:
        """While unhealthy nothing is taken; a read shows when the port answers again."""
        try:
            await self._ports.commands.holds(1)
        except PortError as error:
            self.problem = error
            return
        self.healthy()

    async def _receive(self, delivery: Delivery) -> None:
        while True:
            try:
                await self._route(delivery)
                return
            except InvalidInput as error:
                await self._until_answered(self._reject(delivery, error))
                return
            except PortError as error:
                await self.unhealthy(error)
                await asyncio.sleep(0.5)

    async def _route(self, delivery: Delivery) -> None:
        subject = parse_command_subject(delivery.subject)
        command = read_command(delivery)
        definition = self._agents.get(subject.key.agent)
        if definition is None:
            names = ", ".join(sorted(self._agents))
            refused = Refused(
                "unknown_agent", f"no agent {subject.key.agent!r} here; this installation carries {names}"
            )
            await self._refuse(delivery, subject.key, command, refused)
            await self.finish(delivery)
            return
        request, start = await read_request(delivery, subject, command, definition, self._ports.objects)
        if start is not None and start.thread is not None:
            await self._join_thread(subject.key, start)
        actor = self._actors.get(subject.key)
        if actor is None:
            actor = self._actors[subject.key] = RunActor(subject.key, definition, self)
        actor.submit(Item(request, delivery, start))

    async def _join_thread(self, key: RunKey, start: StartPayload) -> None:
        """A run belongs to its thread before it begins, so that a send can see newer mail (R X.1)."""
        assert start.thread is not None
        thread = RunKey(key.tenant, "@thread", check_token("thread", start.thread, RUN_TOKEN))
        await self.lifecycle.record(thread, ThreadJoined(agent=key.agent, run=key.run, message=start.id))

    # --- what actors need

    def free_slots(self) -> int:
        """Executions that one commit may begin."""
        return ALL_AT_ONCE

    async def gone(self, sequences: Collection[int]) -> frozenset[int]:
        """Those of `sequences` at which COMMANDS holds nothing any more."""
        held = await asyncio.gather(*(self._ports.commands.holds(s) for s in sequences))
        return frozenset(s for s, still in zip(sequences, held, strict=True) if not still)

    def hold(self, delivery: Delivery, until: int) -> None:
        self._ports.heartbeat.hold(delivery.ack_subject, until + DECIDE_MS)

    def broken(self, delivery: Delivery) -> bool:
        """Whether all claims were lost since the delivery came: it may be in other hands."""
        pulled = self._pulled.get(id(delivery))
        return pulled is None or pulled.epoch < self._epoch

    def forget(self, delivery: Delivery) -> None:
        """Frees the delivery's slot without a word to the server."""
        self._ports.heartbeat.drop(delivery.ack_subject)
        pulled = self._pulled.pop(id(delivery), None)
        if pulled is not None:
            self._taken[pulled.consumer] -= 1
            self._freed.set()

    async def finish(self, delivery: Delivery) -> None:
        """Acknowledges: nothing under this command is open any more."""
        try:
            await delivery.ack()
        except PortError as error:
            # The lost acknowledgement brings the command again; it is then found applied.
            await self.unhealthy(error)
        self.forget(delivery)

    async def settle(self, item: Item, key: RunKey, outcome: Outcome, run: Run | None) -> None:
        """What a command's outcome means for its delivery, and the answer to who gave it."""
        delivery, delivered = item.delivery, item.input
        assert delivery is not None and isinstance(delivered, Delivered)
        command = delivered.command
        if isinstance(outcome, Accepted):
            await self._answer(delivery, _answer(key, command, run, ok=True))
            if run is not None and command.id in run.convicted:
                await self._convict(delivery, run, command)
            return
        waited_ms = self._ports.clock.now() - delivery.received_at
        broken = self.broken(delivery)
        following = settle(run, command.id, delivery.claim, outcome, broken=broken, waited_ms=waited_ms)
        if isinstance(following, Silent):
            self.forget(delivery)
        elif isinstance(following, Again):
            self.forget(delivery)
            if not broken:
                await delivery.nak(delay_s=following.delay_ms / 1000)
        elif isinstance(following, Ack | Bury):
            await self._close(item, key, command, outcome, run)

    async def _close(
        self, item: Item, key: RunKey, command: Command, outcome: Nothing | Refused, run: Run | None
    ) -> None:
        """Answers and acknowledges a command under which nothing is open; a convicted one goes to DEAD before."""
        delivery = item.delivery
        assert delivery is not None
        if isinstance(outcome, Nothing):
            if run is not None and command.id in run.convicted:
                await self._convict(delivery, run, command)
            await self._answer(delivery, _answer(key, command, run, ok=True, already=True, reason=outcome.reason))
        elif outcome.reason == "message_id_reused" and item.start is not None:
            await self._restart_elsewhere(delivery, key, command, item.start)
        else:
            await self._refuse(delivery, key, command, outcome)
        await self.finish(delivery)

    async def _restart_elsewhere(self, delivery: Delivery, key: RunKey, command: Command, start: StartPayload) -> None:
        """Another content under a known Message-ID is a message of its own, never approved automatically (DESIGN 3)."""
        run = digest_token(key.tenant, start.mailbox or "", start.id or "", start.content or "")
        elsewhere = RunKey(key.tenant, key.agent, run)
        payload = msgspec.structs.replace(start, flags=(*start.flags, "message_id_reused"))
        moved = msgspec.structs.replace(
            command, id=f"{command.id}-reused", payload=msgspec.Raw(msgspec.json.encode(payload))
        )
        issuer = parse_command_subject(delivery.subject).issuer
        await self._ports.commands.publish(
            command_subject(elsewhere, "start", issuer=issuer),
            msgspec.json.encode(moved),
            command=moved.id,
            headers=_reply_header(delivery),
        )

    async def _refuse(self, delivery: Delivery, key: RunKey, command: Command, refused: Refused) -> None:
        """The attempt goes to AUDITIN before it is answered and acknowledged (DESIGN 2, invariant 8)."""
        record = {
            "kind": "command_refused",
            "run": str(key),
            "command": command.id,
            "verb": command.verb,
            "actor": command.actor,
            "reason": refused.reason,
            "text": refused.text,
            "at": self._ports.clock.now(),
        }
        await self._ports.notes.audit(key.tenant, f"refused-{command.id}", msgspec.json.encode(record))
        answer = Answer(ok=False, command=command.id, run=key.run, reason=refused.reason, text=refused.text)
        await self._answer(delivery, answer)

    async def _reject(self, delivery: Delivery, error: InvalidInput) -> None:
        """A command that cannot be read is kept whole in DEAD, with the reason."""
        log.error(
            "command rejected: %s",
            error,
            extra={"action": "command_rejected", "subject": delivery.subject, "error": str(error)},
        )
        await self._ports.notes.bury(
            delivery.subject, delivery.payload, {**delivery.headers, REASON: _header_text(str(error))}
        )
        answer = Answer(ok=False, command="", run=_run_of(delivery), reason="invalid_input", text=str(error))
        await self._answer(delivery, answer)
        await delivery.term("invalid input")
        self.forget(delivery)

    async def _convict(self, delivery: Delivery, run: Run | None, command: Command) -> None:
        """Guarded commit (done), then DEAD, then term (claims, rule 9)."""
        reason = run.convicted.get(command.id, "convicted") if run is not None else "convicted"
        await self._ports.notes.bury(
            delivery.subject, delivery.payload, {**delivery.headers, REASON: _header_text(reason)}
        )

    async def _answer(self, delivery: Delivery, answer: Answer) -> None:
        reply = delivery.headers.get(REPLY)
        if reply is not None:
            await self._ports.replies.answer(reply, msgspec.json.encode(answer))

    async def late(self, key: RunKey, item: Item, outcome: Refused) -> None:
        """A superseded attempt's result is refused; TRACE keeps a note (DESIGN 2, invariant 4)."""
        record = {"kind": "late_result", "run": str(key), "reason": outcome.reason, "text": outcome.text}
        await self._ports.notes.trace(key.tenant, "late", msgspec.json.encode(record))

    async def unhealthy(self, error: PortError) -> None:
        if self.problem is None:
            log.warning("a port does not answer", extra={"action": "port_unhealthy", "error": str(error)})
        self.problem = error

    def healthy(self) -> None:
        if self.problem is not None:
            log.info("the ports answer again", extra={"action": "port_healthy"})
            self.problem = None
            self._freed.set()

    async def _until_answered(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except PortError as error:
            # Neither answered nor acknowledged: the delivery comes again.
            await self.unhealthy(error)

    def drop(self, actor: "RunActor") -> None:
        """Lets a broken actor go: no word to the server about its deliveries, which lapse and come again."""
        if self._actors.get(actor.key) is actor:
            del self._actors[actor.key]

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a run actor broke", exc_info=task.exception(), extra={"action": "actor_broke"})
            if self._options.strict:
                self._crashed = self._crashed or task.exception()
                self._stopping.set()

    def idle(self, actor: RunActor) -> None:
        """A run leaves memory when it parks."""
        if self._actors.get(actor.key) is actor and not actor.busy:
            del self._actors[actor.key]

    def claims_lost(self) -> None:
        """Called after a pause longer than the lease, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._claims_lost)

    def _claims_lost(self) -> None:
        self._epoch += 1
        for actor in list(self._actors.values()):
            actor.claims_lost()


def _check_provided(agents: Sequence[AgentDefinition], provides: Mapping[type, Any]) -> None:
    for agent in agents:
        for body in agent.bodies.values():
            for name, kind in body.signature.injected.items():
                if kind is not StepContext and kind not in provides:
                    known = ", ".join(sorted(k.__name__ for k in (StepContext, *provides)))
                    raise DefinitionError(
                        f"agent {agent.engine.agent}, step {body.name}: `{name}: {getattr(kind, '__name__', kind)}` is "
                        f"neither an event nor something that is provided here; there is {known}"
                    )


def _answer(
    key: RunKey, command: Command, run: Run | None, *, ok: bool, already: bool = False, reason: str | None = None
) -> Answer:
    version = run.version if run is not None else None
    return Answer(ok=ok, command=command.id, run=key.run, version=version, already=already, reason=reason)


def _reply_header(delivery: Delivery) -> dict[str, str]:
    reply = delivery.headers.get(REPLY)
    return {REPLY: reply} if reply is not None else {}


def _header_text(text: str) -> str:
    """One line that a message header may hold."""
    return " ".join(text.split())[:500].encode("ascii", "replace").decode("ascii")


def _run_of(delivery: Delivery) -> str:
    parts = delivery.subject.split(".")
    return parts[6] if len(parts) > 6 else ""


async def _first(*waits: Coroutine[Any, Any, Any], timeout: float) -> None:
    tasks = [asyncio.create_task(w) for w in waits]
    await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
