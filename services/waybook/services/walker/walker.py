"""The walker: pulls commands, gives each to its run's actor, answers, and acknowledges last."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from waybook.agents.checks import check
from waybook.agents.definition import AgentDefinition
from waybook.agents.effects import EffectAdapter
from waybook.agents.errors import DefinitionError
from waybook.agents.findings import errors
from waybook.agents.prices import Prices
from waybook.engine.aggregates.sender import Rate
from waybook.engine.hooks import ClaimsLost, CommandsTaken, Hook, WalkerState, ignore
from waybook.engine.operations import CLOCK_MARGIN_MS
from waybook.engine.ports import (
    Clock,
    CommandQueue,
    Delivery,
    Heartbeat,
    Notes,
    Objects,
    PortError,
    Replies,
    Snapshots,
    StateLog,
)
from waybook.events.codec import Codec
from waybook.events.ending import end
from waybook.events.subjects import RunKey
from waybook.services.walker.actor import RunActor
from waybook.services.walker.aggregates import Aggregates
from waybook.services.walker.correspondence import Correspondence
from waybook.services.walker.definitions import Definitions
from waybook.services.walker.effects import EffectsDesk, Put
from waybook.services.walker.execution import Executor
from waybook.services.walker.item import Item
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.meter import Meter
from waybook.services.walker.people import PeopleDesk
from waybook.services.walker.reception import Reception
from waybook.services.walker.senders import Senders
from waybook.services.walker.snapshots import LongRuns
from waybook.services.walker.solitude import Solitude
from waybook.services.walker.threads import Threads

log = logging.getLogger(__name__)

COALESCE_S = 0.002
"""How long a pull waits for more slots while most are taken: one pull for many is cheaper than many pulls."""

DECIDE_MS = 600_000
"""How long a lease is renewed while its command waits for a decision or a server, beyond any step's deadline."""

ALL_AT_ONCE = 1_000_000
"""How many executions one commit may begin where no scheduler answers `StepOffered`."""

PORT_PAUSE_S = 0.2
"""How long to wait before a port that failed is asked again."""

PROBE_S = 0.5
"""How often a walker looks whether it may take commands again."""


class WalkerPorts(msgspec.Struct, frozen=True):
    """The outside of a walker."""

    state: StateLog
    commands: CommandQueue
    replies: Replies
    notes: Notes
    objects: Objects
    heartbeat: Heartbeat
    clock: Clock
    snapshots: Snapshots | None = None


class WalkerOptions(msgspec.Struct, frozen=True):
    """`slots`: starts walked at once, `step_slots`: offered steps. `ctl_slots` are kept beside them for decisions; the place
    of one whose steps run is free for another, `slots` times. `pull_s`: one pull's patience.

    `lane_consumers`: those of the lanes of its definitions (`waybook.services.walker.definitions.lanes`), with
    `lane_slots` each; commands come there only when another walker could not continue their run.

    `stop_s`: how long a graceful stop may take, bodies in threads included. `strict`: a run actor that breaks stops the
    walker, instead of leaving its command to be redelivered. `clock_margin_ms`: how far the clocks of two walkers may be
    apart; so long after its last moment a side effect that is not there counts as absent. `executions`: how many one
    commit begins; the rest is offered to all workers, by way of the scheduler. None: all of them. `arrivals`: how fast
    one sender's messages may begin on live channels, None: as fast as they come.
    """

    name: str = "walker"
    slots: int = 64
    ctl_slots: int = 16
    pull_s: float = 1.0
    stop_s: float = 10.0
    strict: bool = False
    step_slots: int = 16
    new_consumer: str = "new_any"
    step_consumer: str = "step_any"
    ctl_consumer: str = "ctl_any"
    lane_consumers: tuple[str, ...] = ()
    lane_slots: int = 16
    clock_margin_ms: int = CLOCK_MARGIN_MS
    executions: int | None = None
    arrivals: Rate | None = None


class Walker:
    """Walks the runs of `agents`. `provides` maps types that steps ask for to the objects they get, `hook` counts.

    `effects` are the adapters of the side effects that steps may ask for, by name.

    `older` definitions of the same agents continue the runs that began under them and start none. Commands for runs
    of a definition that is not carried at all go to its lane (DESIGN 3).

    `run()` works until `stop()`; cancelling it instead leaves everything as a killed process would. Raises
    DefinitionError at once when a step asks for a type that is not provided. A run actor that breaks for a reason
    of the program's own gives up its run; its commands come again after their lease.
    """

    def __init__(
        self,
        agents: Sequence[AgentDefinition],
        ports: WalkerPorts,
        *,
        older: Iterable[AgentDefinition] = (),
        provides: Mapping[type, Any] | None = None,
        effects: Mapping[str, EffectAdapter] | None = None,
        options: WalkerOptions | None = None,
        codec: Codec | None = None,
        hook: Hook = ignore,
    ) -> None:
        self.definitions = Definitions(agents, older)
        self._ports = ports
        self._options = options or WalkerOptions()
        _check_provided(self.definitions, provides or {})
        self._hook = hook
        long_runs = LongRuns(ports.snapshots, self.spawn) if ports.snapshots is not None else None
        self.lifecycle = Lifecycle(ports.state, codec or Codec(), ports.clock, self._options.name, hook, long_runs)
        self.solitude = Solitude(self, self._wake_pulls)
        self.effects = EffectsDesk(
            effects or {},
            Put(self.submit, self.spawn, self.solitude.pause),
            commands=ports.commands,
            notes=ports.notes,
            objects=ports.objects,
            clock=ports.clock,
            margin_ms=self._options.clock_margin_ms,
        )
        self.threads = Threads(self.lifecycle, ports.notes)
        self.aggregates = self.effects.aggregates = Aggregates(self.lifecycle, self.spawn)
        prices = (provides or {}).get(Prices)
        meter = Meter(self.aggregates, prices, ports.clock) if prices is not None else None
        self.executor = Executor(provides or {}, ports.clock, self.effects, self.threads, meter, hook)
        self.correspondence = Correspondence(ports.commands, ports.notes, ports.replies, ports.clock, hook)
        people = PeopleDesk(self.aggregates, self.correspondence)
        self._reception = Reception(
            self.definitions, self.lifecycle, self.correspondence, ports.objects, self.is_broken, people,
            Senders(self.aggregates, self._options.arrivals),
        )  # fmt: skip
        self._actors: dict[RunKey, RunActor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._crashed: BaseException | None = None
        self._slots = _slots(self._options)
        self._taken = dict.fromkeys(self._slots, 0)
        self._origin: dict[int, str] = {}
        self._at_work: set[int] = set()
        self._freed = asyncio.Event()
        self._outages: dict[object, PortError] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- taking commands

    async def run(self) -> None:
        """Takes and walks commands until `stop()`. Raises what broke a run actor for a reason of the program's own."""
        self._loop = asyncio.get_running_loop()
        pulls = [asyncio.create_task(self._pull(consumer, slots)) for consumer, slots in self._slots.items()]
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([*pulls, stopped], return_when=asyncio.FIRST_COMPLETED)
            await self._wind_down(pulls)
        finally:
            self._stopping.set()
            await end((*pulls, stopped, *self._tasks))
        if self._crashed is not None:
            raise self._crashed

    async def stop(self) -> None:
        """Asks for a graceful stop: nothing new is taken, open actions are released, deliveries given back.

        Steps that do not end within `stop_s`, and whatever a server that is away keeps from being released, lapse
        with their leases.
        """
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop, or is ending because it broke."""
        return self._stopping.is_set()

    async def _wind_down(self, pulls: Sequence[asyncio.Task[None]]) -> None:
        for task in pulls:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
        if self._crashed is not None:
            return
        self._stopping.set()
        self.solitude.close()
        await self._release(everything=False)
        await asyncio.gather(*pulls)
        if not await self._quiet(self._options.stop_s / 2):
            await self._release(everything=True)
            if not await self._quiet(self._options.stop_s / 2):
                log.warning("stopped with leases that have to lapse", extra={"action": "stop_incomplete"})
                return
        for actor in list(self._actors.values()):
            await actor.give_back()

    async def _release(self, *, everything: bool) -> None:
        for actor in list(self._actors.values()):
            await actor.release(everything=everything)

    async def _quiet(self, within_s: float) -> bool:
        """Whether all that is under way has ended within that time."""
        end = asyncio.get_running_loop().time() + within_s
        while self._tasks and (left := end - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(list(self._tasks), timeout=left)
        return not self._tasks

    async def _pull(self, consumer: str, slots: int) -> None:
        while not self._stopping.is_set():
            if 0 < slots - self._taken[consumer] < slots // 4:
                await asyncio.sleep(COALESCE_S)
            free = slots - self._taken[consumer]
            if free <= 0 or self.problem is not None or self.solitude.engaged:
                self._freed.clear()
                await _first(self._freed.wait(), self._stopping.wait(), timeout=PROBE_S)
                self.solitude.keep()
                await self._probe(consumer)
                continue
            try:
                deliveries = await self._ports.commands.pull(consumer, free, self._options.pull_s)
            except PortError as error:
                self._unhealthy(consumer, error)
                continue
            if deliveries:
                again = sum(d.claim.delivery > 1 for d in deliveries)
                self._hook(CommandsTaken(consumer, len(deliveries), again))
            for delivery in deliveries:
                self._taken[consumer] += 1
                self._origin[id(delivery)] = consumer
                self._ports.heartbeat.hold(delivery.ack_subject, self._ports.clock.now() + DECIDE_MS)
                if self.solitude.engaged:
                    self.solitude.delay(delivery)
                else:
                    self.receive(delivery)
            await asyncio.sleep(0)

    async def _probe(self, consumer: str) -> None:
        """After a pull failed a read shows when the port answers again. Others try again by themselves."""
        if consumer not in self._outages:
            return
        try:
            await self._ports.commands.holds(1)
        except PortError as error:
            self._unhealthy(consumer, error)
            return
        self.healthy(consumer)

    def receive(self, delivery: Delivery) -> None:
        """Reads a delivery and puts it before its run; the ports may be away for long."""
        self.spawn(self._receive(delivery))

    async def _receive(self, delivery: Delivery) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    received = await self._reception.receive(delivery)
                except PortError as error:
                    await self.outage(delivery.ack_subject, error)
                    continue
                if received is None:
                    self.forget(delivery)
                    return
                if not self._stopping.is_set():
                    self.submit(*received)
                    return
            await self.hand_back(delivery)
        except Exception:
            self.forget(delivery)
            raise
        finally:
            self.healthy(delivery.ack_subject)

    def submit(self, key: RunKey, item: Item) -> None:
        """Puts an input before its run, which comes into memory when it is not there."""
        actor = self._actors.get(key)
        if actor is None:
            actor = self._actors[key] = RunActor(key, self)
        actor.submit(item)

    # --- what actors need

    def now(self) -> int:
        return self._ports.clock.now()

    def free_slots(self) -> int:
        """Executions that one commit may begin."""
        return self._options.executions if self._options.executions is not None else ALL_AT_ONCE

    async def gone(self, sequences: Collection[int]) -> frozenset[int]:
        """Those of `sequences` at which COMMANDS holds nothing any more."""
        held = await asyncio.gather(*(self._ports.commands.holds(s) for s in sequences))
        return frozenset(s for s, still in zip(sequences, held, strict=True) if not still)

    def hold(self, delivery: Delivery, until: int) -> None:
        self._ports.heartbeat.hold(delivery.ack_subject, until + DECIDE_MS)

    def keep_lease(self, delivery: Delivery) -> bool:
        """For a delivery that waits: its lease is renewed for another while, unless it broke and was let go."""
        if self.is_broken(delivery):
            self.forget(delivery)
            return False
        self.hold(delivery, self.now())
        return True

    def let_lapse(self, delivery: Delivery) -> None:
        """Renews the lease no longer, while the delivery keeps its slot."""
        self._ports.heartbeat.drop(delivery.ack_subject)

    def is_broken(self, delivery: Delivery) -> bool:
        return self._ports.heartbeat.is_broken(delivery.ack_subject)

    def forget(self, delivery: Delivery) -> None:
        """Lets a delivery go without a word to the server."""
        self._ports.heartbeat.drop(delivery.ack_subject)
        self.free_slot(delivery)

    def free_slot(self, delivery: Delivery) -> None:
        """Another command may be taken in the place of this one, which may still be held."""
        self._at_work.discard(id(delivery))
        consumer = self._origin.pop(id(delivery), None)
        if consumer is not None:
            self._taken[consumer] -= 1
            self._freed.set()

    def at_work(self, delivery: Delivery) -> None:
        """The command was decided and its steps run: of those that hold places for decisions as many as there are
        places for work give theirs to another one, so that a decision does not wait for other people's steps."""
        place = id(delivery)
        holds = self._origin.get(place)
        works = (None, self._options.new_consumer, self._options.step_consumer)
        if holds not in works and len(self._at_work) < self._options.slots:
            self.free_slot(delivery)
            self._at_work.add(place)

    async def finish(self, delivery: Delivery) -> None:
        """Acknowledges: nothing under this command is open any more. A lost one brings it again, found applied."""
        await delivery.ack()
        self.forget(delivery)

    async def hand_back(self, delivery: Delivery) -> None:
        """At a stop: another process gets it at once, unless it may have it already."""
        if not self.is_broken(delivery):
            await delivery.nak()
        self.forget(delivery)

    # --- health

    @property
    def problem(self) -> PortError | None:
        """Why nothing is taken just now: a port that does not answer, or refuses for reasons of its own."""
        return next(iter(self._outages.values()), None)

    @property
    def state(self) -> WalkerState:
        """How it stands at this moment."""
        return WalkerState(self.problem is None, len(self._actors), dict(self._slots), dict(self._taken))

    async def outage(self, who: object, error: PortError) -> None:
        """Notes that a port failed `who`, and returns when it is time to try again."""
        self._unhealthy(who, error)
        await asyncio.sleep(PORT_PAUSE_S)

    def _unhealthy(self, who: object, error: PortError) -> None:
        if not self._outages:
            log.warning("a port does not answer", extra={"action": "port_unhealthy", "error": str(error)})
        self._outages[who] = error

    def healthy(self, who: object) -> None:
        """The ports did what `who` asked for, or it asks no more."""
        if self._outages.pop(who, None) is not None and not self._outages:
            log.info("the ports answer again", extra={"action": "port_healthy"})
            self._freed.set()

    # --- tasks and actors

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

    def company(self) -> Collection[RunActor]:
        """All runs in memory."""
        return self._actors.values()

    def _wake_pulls(self) -> None:
        self._freed.set()

    def idle(self, actor: RunActor) -> None:
        """A run leaves memory when it parks."""
        if self._actors.get(actor.key) is actor and not actor.busy:
            del self._actors[actor.key]
            actor.leave()

    def drop(self, actor: RunActor) -> None:
        """Lets a broken actor go: no word to the server about its deliveries, which lapse and come again."""
        if self._actors.get(actor.key) is actor:
            del self._actors[actor.key]
        self.solitude.check()

    def claims_lost(self) -> None:
        """Called after a pause longer than the lease, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._claims_lost)

    def _claims_lost(self) -> None:
        self._hook(ClaimsLost())
        for actor in list(self._actors.values()):
            actor.claims_lost()


def _slots(options: WalkerOptions) -> dict[str, int]:
    """How many commands may be held at once, by consumer."""
    lanes = dict.fromkeys(options.lane_consumers, options.lane_slots)
    return {
        options.new_consumer: options.slots,
        options.ctl_consumer: options.ctl_slots,
        options.step_consumer: options.step_slots,
        **lanes,
    }


def _check_provided(agents: Iterable[AgentDefinition], provides: Mapping[type, Any]) -> None:
    """Refuses agents whose steps ask for what nobody provides; says what else `check` has to say of them."""
    for agent in agents:
        findings = check(agent.agent, tuple(provides))
        wrong = errors(findings)
        if wrong:
            text = "\n".join(str(f) for f in wrong)
            raise DefinitionError(f"agent {agent.engine.agent} cannot run:\n{text}", wrong)
        for finding in findings:
            log.warning("%s", finding, extra={"action": "definition_warning", "code": finding.code})


async def _first(*waits: Coroutine[Any, Any, Any], timeout: float) -> None:
    tasks = [asyncio.create_task(w) for w in waits]
    await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
