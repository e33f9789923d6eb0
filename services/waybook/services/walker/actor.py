"""The run actor: everything that reaches one run in one process passes through here, one append at a time."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.inputs import (
    Accepted,
    Completed,
    Delivered,
    Failed,
    Input,
    Nothing,
    Outcome,
    Refused,
    Released,
    Start,
    World,
)
from waybook.engine.lease import (
    Ack,
    Bury,
    GiveBack,
    Keep,
    Silent,
    give_back,
    is_expired,
    questions,
    reconcile,
    settle,
)
from waybook.engine.ports import AppendConflict, CommitTooLarge, Delivery, PortError
from waybook.engine.run import Action, Run
from waybook.events.command import StartPayload
from waybook.events.engine import Failure
from waybook.events.subjects import RunKey
from waybook.services.walker.execution import Executor
from waybook.services.walker.lifecycle import Committed, Lifecycle

log = logging.getLogger(__name__)

MERGE_LIMIT_BYTES = 200 * 1024
PERSON_TRIES = 8
PORT_PAUSE_S = 0.2


class Item(msgspec.Struct, frozen=True):
    """An input waiting for the run, with the delivery that brought it."""

    input: Input
    delivery: Delivery | None = None
    start: StartPayload | None = None


class Office(Protocol):
    """What an actor needs of its walker."""

    lifecycle: Lifecycle
    executor: Executor

    def free_slots(self) -> int: ...
    async def gone(self, sequences: Collection[int]) -> frozenset[int]: ...
    def hold(self, delivery: Delivery, until: int) -> None: ...
    def broken(self, delivery: Delivery) -> bool: ...
    async def settle(self, item: Item, key: RunKey, outcome: Outcome, run: Run | None) -> None: ...
    async def finish(self, delivery: Delivery) -> None: ...
    def forget(self, delivery: Delivery) -> None: ...
    async def late(self, key: RunKey, item: Item, outcome: Refused) -> None: ...
    async def unhealthy(self, error: PortError) -> None: ...
    def healthy(self) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...
    def idle(self, actor: "RunActor") -> None: ...
    def drop(self, actor: "RunActor") -> None: ...


class RunActor:
    """Owns one run in this process: decides what waits for it together, appends, starts what began.

    It follows the claim rules of DESIGN 4: `holds` are the deliveries under which its actions run, one a command;
    they are acknowledged when no action under them is open, and dropped in silence when superseded.
    """

    def __init__(self, key: RunKey, definition: AgentDefinition, office: Office) -> None:
        self.key = key
        self._definition = definition
        self._office = office
        self._waiting: deque[Item] = deque()
        self._run: Run | None = None
        self._loaded = False
        # Others may have written since: the run is read again before anything is decided.
        self._behind = False
        self._look = False
        self._working = False
        self.holds: dict[str, Delivery] = {}
        # Bodies by action: one that has ended stays until its result is decided.
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    @property
    def busy(self) -> bool:
        return self._working or bool(self._waiting or self._tasks or self.holds)

    def submit(self, item: Item) -> None:
        """Puts an input before the run; it is decided with everything else that waits."""
        self._waiting.append(item)
        self._wake()

    def _wake(self) -> None:
        if not self._working:
            self._working = True
            self._office.spawn(self._work())

    async def _work(self) -> None:
        batch: list[Item] = []
        try:
            while self._waiting or self._look or self._to_release():
                if self._look:
                    await self._read_again()
                    continue
                batch = self._take() if self._waiting else [Item(Released(self._to_release()))]
                await self._decide(batch)
        except Exception:
            self._break(batch)
            raise
        finally:
            self._working = False
        if not self.busy:
            self._office.idle(self)

    def _take(self) -> list[Item]:
        """What waits, in order of arrival, as far as it fits into one commit."""
        batch = [self._renewal(self._waiting.popleft())]
        size = _size(batch[0].input)
        while self._waiting and size + _size(self._waiting[0].input) <= MERGE_LIMIT_BYTES:
            size += _size(self._waiting[0].input)
            batch.append(self._renewal(self._waiting.popleft()))
        return batch

    def _renewal(self, item: Item) -> Item:
        """A second delivery of a command that this process still walks renews its claim (rule 5)."""
        if isinstance(item.input, Delivered) and item.delivery is not None and item.input.command.id in self.holds:
            held = self.holds[item.input.command.id].claim
            return Item(msgspec.structs.replace(item.input, held=held), item.delivery, item.start)
        return item

    async def _decide(self, batch: list[Item]) -> None:
        committed: Committed | None = None
        while committed is None:
            try:
                await self._catch_up(batch)
                batch = self._unexpired(batch)
                if not batch:
                    return
                committed = await self._attempt(batch)
            except AppendConflict:
                self._behind = True
            except CommitTooLarge as error:
                batch = _as_failures(batch, error)
            except PortError as error:
                await self._office.unhealthy(error)
                await asyncio.sleep(PORT_PAUSE_S)
        self._office.healthy()
        await self._afterwards(batch, committed)

    async def _catch_up(self, batch: list[Item]) -> None:
        """A first start is decided without reading: most find an empty subject, and the guard tells the others."""
        if self._behind or not (self._loaded or isinstance(_body(batch[0]), Start)):
            await self._reload()

    async def _reload(self) -> None:
        self._run = await self._office.lifecycle.load(self.key, self._run)
        self._loaded, self._behind = True, False

    def _unexpired(self, batch: list[Item]) -> list[Item]:
        """Without the deliveries whose leases lapsed while they waited: a newer one may be in other hands (rule 8)."""
        kept = []
        for item in batch:
            one, delivery = item.input, item.delivery
            if isinstance(one, Delivered) and delivery is not None:
                broken = self._office.broken(delivery)
                if is_expired(self._run, one.command.id, one.claim, broken=broken):
                    self._office.forget(delivery)
                    continue
            kept.append(item)
        return kept

    async def _attempt(self, batch: list[Item]) -> Committed | None:
        """One decision and its append; None when it appended nothing and the run turned out to be stale."""
        inputs = [item.input for item in batch]
        committed = await self._office.lifecycle.commit(
            self._definition.engine,
            self.key,
            self._run,
            inputs,
            await self._world(inputs),
            tries=PERSON_TRIES if all(isinstance(i, Delivered) and i.person for i in inputs) else None,
            causation=next((i.command.id for i in inputs if isinstance(i, Delivered)), None),
        )
        if committed.appended:
            self._run, self._loaded = committed.run, True
        elif not await self._office.lifecycle.confirmed(self.key, self._run):
            self._behind = True
            return None
        return committed

    async def _read_again(self) -> None:
        """After a pause longer than the lease: what others made of the run decides what goes on here."""
        self._look = False
        while self._behind:
            await self._insist(self._reload)
        self._reconcile(self._run)
        await self._settle_holds(self._run)

    async def _world(self, inputs: Sequence[Input]) -> World:
        free = max(1, self._office.free_slots())
        asked = questions(self._run, inputs, self._tasks)
        return World(free_slots=free, gone=await self._office.gone(asked) if asked else frozenset())

    async def _afterwards(self, batch: list[Item], committed: Committed) -> None:
        """After the commit: start what began, stop what is no longer open, answer, settle the deliveries."""
        self._hold(batch, committed)
        run = self._run
        for item in batch:
            if isinstance(item.input, Completed | Failed):
                self._tasks.pop(item.input.action, None)
        self._reconcile(run)
        for item, outcome in zip(batch, committed.decision.outcomes, strict=True):
            if item.delivery is not None and isinstance(item.input, Delivered):
                await self._insist(partial(self._office.settle, item, self.key, outcome, run))
            elif isinstance(outcome, Refused):
                await self._office.late(self.key, item, outcome)
        await self._settle_holds(run)

    def _reconcile(self, run: Run | None) -> None:
        """Starts and cancels bodies until they are those that the stored run names under the claims held here."""
        work = reconcile(run, {c: d.claim for c, d in self.holds.items()}, self._tasks)
        for action_id in work.cancel:
            self._tasks.pop(action_id).cancel()
        if run is not None and not self._stopping:
            for action in work.start:
                self._begin(run, action)

    async def _insist(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What follows a stored commit is done again until the ports take it."""
        while True:
            try:
                await work()
                return
            except PortError as error:
                await self._office.unhealthy(error)
                await asyncio.sleep(PORT_PAUSE_S)

    def _hold(self, batch: list[Item], committed: Committed) -> None:
        for item, outcome in zip(batch, committed.decision.outcomes, strict=True):
            if item.delivery is None or not isinstance(item.input, Delivered):
                continue
            if isinstance(outcome, Accepted) or outcome == Nothing("held"):
                self._renew(item.input.command.id, item.delivery)

    def _renew(self, command: str, delivery: Delivery) -> None:
        """The later of two deliveries stays; the other is let go without a word."""
        older = self.holds.get(command)
        if older is not None and older.claim >= delivery.claim:
            self._office.forget(delivery)
            return
        if older is not None:
            self._office.forget(older)
        self.holds[command] = delivery

    def _begin(self, run: Run, action: Action) -> None:
        self._tasks[action.id] = self._office.spawn(self._execute(run, action))

    async def _execute(self, run: Run, action: Action) -> None:
        self.submit(Item(await self._office.executor.run(self._definition, run, action)))

    async def _settle_holds(self, run: Run | None) -> None:
        """Acknowledges commands without open actions; drops those that a later delivery holds (rules 3 and 4)."""
        for command, delivery in list(self.holds.items()):
            following = settle(run, command, delivery.claim)
            if isinstance(following, Keep) and run is not None:
                if not self._office.broken(delivery):
                    deadlines = (a.deadline for a in run.open_actions() if a.command == command)
                    self._office.hold(delivery, max(deadlines))
            elif isinstance(following, Silent):
                log.info("superseded", extra={"action": "claim_superseded", "run": str(self.key), "command": command})
                self._office.forget(self.holds.pop(command))
            elif isinstance(following, Ack | Bury):
                del self.holds[command]
                await self._office.finish(delivery)

    def _break(self, batch: list[Item]) -> None:
        """The actor cannot go on: its tasks end and its deliveries lapse, so that the commands come again."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        deliveries = [i.delivery for i in (*batch, *self._waiting) if i.delivery is not None]
        for delivery in (*deliveries, *self.holds.values()):
            self._office.forget(delivery)
        self._waiting.clear()
        self.holds.clear()
        self._office.drop(self)

    def claims_lost(self) -> None:
        """After a pause longer than the lease every claim counts as lost: the run's tail is read before anything else."""
        self._behind = self._look = True
        self._wake()

    def release(self) -> None:
        """Graceful stop: gives back the actions of every held command, once what waits is decided."""
        self._stopping = True
        for task in self._tasks.values():
            task.cancel()
        if self._to_release():
            self._wake()

    def _to_release(self) -> tuple[str, ...]:
        if not self._stopping or self._run is None:
            return ()
        claims = {c: d.claim for c, d in self.holds.items()}
        running = (a for a in self._run.open_actions() if a.status == "running")
        return tuple(a.id for a in running if claims.get(a.command) == a.claim)

    async def give_back(self) -> None:
        """After `release` was decided: the deliveries go back to the queue at once (rule 4)."""
        for command, delivery in list(self.holds.items()):
            del self.holds[command]
            following = give_back(self._run, command, delivery.claim, broken=self._office.broken(delivery))
            if isinstance(following, Ack):
                await self._office.finish(delivery)
                continue
            self._office.forget(delivery)
            if isinstance(following, GiveBack):
                await delivery.nak()


def _body(item: Item) -> object:
    return item.input.body if isinstance(item.input, Delivered) else None


def _size(one: Input) -> int:
    """Bytes that an input adds to a commit, roughly: its payloads and the engine's own events."""
    if isinstance(one, Completed):
        return 2048 + sum(len(bytes(o.payload)) for o in one.outputs)
    if isinstance(one, Delivered) and isinstance(one.body, Start):
        return 2048 + len(bytes(one.body.output.payload))
    return 2048


def _as_failures(batch: list[Item], error: CommitTooLarge) -> list[Item]:
    """A result that does not fit into a commit fails its step; it would not fit the next time either."""
    failure = Failure("CommitTooLarge", str(error), retryable=False)
    replaced = []
    for item in batch:
        one = item.input
        if isinstance(one, Completed):
            failed = Failed(one.action, failure, one.duration_ms, model=one.model, usage=one.usage)
            item = Item(failed, item.delivery)
        replaced.append(item)
    if replaced == batch:
        raise error
    return replaced
