"""The run actor: everything that reaches one run in one process passes through here, one append at a time."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from waybook.engine.inputs import (
    Accepted,
    Completed,
    Delivered,
    Failed,
    Nothing,
    Outcome,
    Refused,
    Released,
    World,
)
from waybook.engine.lease import (
    PATIENCE_MS,
    Ack,
    Again,
    Bury,
    Forward,
    GiveBack,
    Keep,
    Silent,
    give_back,
    is_expired,
    questions,
    reconcile,
    settle,
)
from waybook.engine.needs import needs
from waybook.engine.ports import AppendConflict, CommitTooLarge, Delivery, PortError
from waybook.engine.run import Run
from waybook.events.codec import UnstorableCommit
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RunKey
from waybook.services.walker.bodies import Bodies
from waybook.services.walker.effects import RunLost
from waybook.services.walker.execution import not_storable
from waybook.services.walker.hearing import received, tell, tell_error
from waybook.services.walker.item import Item
from waybook.services.walker.later import Later
from waybook.services.walker.lifecycle import Committed
from waybook.services.walker.mailbox import Mailbox
from waybook.services.walker.office import Office
from waybook.services.walker.threads import Aside
from waybook.services.walker.unreadable import told_unreadable

log = logging.getLogger(__name__)

PERSON_TRIES = 8
NONE_GONE: frozenset[int] = frozenset()


class RunActor:
    """Owns one run in this process: decides what waits for it together, appends, starts what began.

    It follows the claim rules (`waybook.engine.lease`): `holds` are the deliveries under which its actions run, one
    a command; they are acknowledged when no action under them is open, and dropped in silence when superseded. A
    delivery whose lease is broken keeps its running bodies, starts none, and has the run read every two seconds
    until it came again, here or elsewhere.
    """

    def __init__(self, key: RunKey, office: Office) -> None:
        self.key = key
        self._definition = office.definitions.of(key, None)
        self._office = office
        self._waiting = Mailbox()
        self._run: Run | None = None
        self._known: Literal["never read", "stale", "read"] = "never read"
        self._working = False
        self.holds: dict[str, Delivery] = {}
        self._bodies = Bodies(office.executor, office.spawn, self._go_on, self._nudge)
        self._aside = Aside(key, office.threads, office.correspondence)
        self._later = Later(self._again, self._look_at_once)
        self._look_due = False
        self._stopping = False

    @property
    def busy(self) -> bool:
        return bool(self._working or self.holds or self._waiting or self._bodies or self._later)

    @property
    def active(self) -> bool:
        """Whether it decides or runs a body just now, so that the death of this process would cost it something."""
        return self._working or bool(self._waiting or self._bodies)

    def leave(self) -> None:
        """It left memory. Nothing is under way, and nobody will call it again."""
        self._bodies.leave()
        self._later.leave()

    def submit(self, item: Item) -> None:
        """Puts an input before the run; it is decided with everything else that waits."""
        self._waiting.append(item)
        self._nudge()

    def _nudge(self) -> None:
        if not self._working and (self._waiting or self._look_due or self._to_release()):
            self._working = True
            self._office.spawn(self._bodies.after(self._work()))

    async def _work(self, result: Completed | Failed | None = None) -> None:
        """Decides all that waits, behind `result` of a body that ended in this task."""
        batch: list[Item] = []
        try:
            if result is not None:
                batch = [Item(result)]
                if self._waiting or not isinstance(result, Completed) or not await self._decide_shortly(result):
                    self._waiting.append(batch[0])
            while True:
                if self._waiting:
                    self._bodies.begin_apart()
                    batch = [self._renewal(item) for item in self._waiting.take()]
                    await self._decide(batch)
                elif self._look_due:
                    await self._look()
                elif self._stopping and (released := self._to_release()):
                    await self._decide([Item(Released(released))])
                else:
                    break
        except Exception as error:
            self._break(await told_unreadable(self._office, self.key, batch, error))
            raise
        finally:
            self._working = False
            self._office.healthy(self)
        self._office.solitude.check()
        if not self.busy:
            self._later.cancel()
            self._office.idle(self)

    def _renewal(self, item: Item) -> Item:
        """A second delivery of a command that this process still walks renews its claim (rule 5)."""
        if isinstance(item.input, Delivered) and item.delivery is not None and item.input.command.id in self.holds:
            held = self.holds[item.input.command.id].claim
            return msgspec.structs.replace(item, input=msgspec.structs.replace(item.input, held=held))
        return item if item.heard is None else received(item, self._run, self.holds)

    # --- deciding

    async def _decide(self, batch: list[Item]) -> None:
        """Decides until it is stored, or until nothing of the batch is left to decide."""
        if self._office.solitude.engaged:
            batch = self._office.solitude.admit(self.key, batch, self.holds)
        while batch := self._unexpired(batch):
            try:
                committed = await self._attempt(batch)
            except AppendConflict:
                self._known = "stale"
            except PortError as error:
                self._known = "stale"  # it may be stored
                await self._office.outage(self, error)
            except (CommitTooLarge, UnstorableCommit) as error:
                await self._decide_unstorable(batch, error)
                return
            else:
                self._office.healthy(self)
                if committed is not None:
                    await self._afterwards(batch, committed)
                    return

    async def _decide_shortly(self, result: Completed) -> bool:
        """The usual result: alone, on a run that is known, and stored at the first try. False: to be decided with care."""
        office, run, definition = self._office, self._run, self._definition.engine
        if run is None or self._known != "read" or office.solitude.engaged or needs(definition, (result,)):
            return False
        decision = office.lifecycle.decide(definition, self.key, run, (result,), World(office.free_slots()))
        if not decision.events:
            return False
        try:
            committed = await office.lifecycle.store(definition, self.key, run, decision)
        except (AppendConflict, PortError, CommitTooLarge, UnstorableCommit) as error:
            self._known = "stale"  # it may be stored
            if isinstance(error, PortError):
                await office.outage(self, error)
            return False
        after = self._run = committed.run
        if decision.diagnostics or after is None or after.thread_changes or not self._goes_on(result):
            await self._afterwards([Item(result)], committed)
        return True

    def _unexpired(self, batch: list[Item]) -> list[Item]:
        """Drops deliveries whose lease lapsed while they waited: a live worker may have them (lease, rule 0)."""
        if len(batch) == 1 and batch[0].delivery is None:
            return batch
        kept = []
        for item in batch:
            if item.delivery is not None and isinstance(item.input, Delivered):
                broken = self._office.is_broken(item.delivery)
                if is_expired(self._run, item.input.command.id, item.delivery.claim, broken=broken):
                    log.info("a delivery lapsed while it waited", extra={"action": "delivery_lapsed", **item.for_log()})
                    self._office.forget(item.delivery)
                    continue
            kept.append(item)
        return kept

    async def _attempt(self, batch: list[Item]) -> Committed | None:
        """One decision and its append; None when the batch has to be decided again.

        So it has when nothing was appended and the run turned out to be stale, and when suspects were set aside.
        """
        if self._known != "read" and (self._known == "stale" or not batch[0].is_start):
            await self._read()
        inputs = [item.input for item in batch]
        delivered = [one for one in inputs if isinstance(one, Delivered)]
        lifecycle, engine = self._office.lifecycle, self._definition.engine
        asked = questions(self._run, delivered, self._bodies) if delivered else None
        gone = await self._office.gone(asked) if asked else NONE_GONE
        world = World(self._office.free_slots(), gone)
        if needed := needs(engine, inputs):
            thread = self._run.thread if self._run is not None else None
            world = await self._office.aggregates.see(world, self.key, thread, needed)
        decision = lifecycle.decide(engine, self.key, self._run, inputs, world)
        if delivered and self._run is not None and self._office.solitude.set_aside(self.key, batch, decision):
            return None
        committed = await lifecycle.store(
            engine,
            self.key,
            self._run,
            decision,
            tries=PERSON_TRIES if len(delivered) == len(inputs) and all(d.person for d in delivered) else None,
            causation=delivered[0].command.id if delivered else None,
        )
        if committed.appended:
            self._run, self._known = committed.run, "read"
        elif not await lifecycle.confirmed(self.key, self._run):
            self._known = "stale"
            return None
        return committed

    async def _read(self) -> None:
        self._run = await self._office.lifecycle.load(self.key, self._run)
        self._definition = self._office.definitions.of(self.key, self._run)
        self._known = "read"

    async def _decide_unstorable(self, batch: list[Item], error: CommitTooLarge | UnstorableCommit) -> None:
        """Finds whose commit cannot be stored: a result fails its step, a command is rejected."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._decide(batch[:middle])
            await self._decide(batch[middle:])
            return
        one, delivery = batch[0].input, batch[0].delivery
        if isinstance(one, Completed | Failed) and (failed := not_storable(one, error)) is not None:
            await self._decide([Item(failed)])
        elif batch[0].heard is not None:
            tell_error(batch[0], error)
        elif delivery is not None:
            await self._insist(partial(self._office.correspondence.reject, delivery, InvalidInput(str(error))))
            await self._office.finish(delivery)
        else:
            raise error

    # --- after the commit

    async def _afterwards(self, batch: list[Item], committed: Committed) -> None:
        """After the commit: start what began, stop what is no longer open, answer, settle the deliveries."""
        if committed.decision.diagnostics or (self._run is not None and self._run.thread_changes):
            await self._insist(partial(self._aside.after, committed))
        for item, outcome in zip(batch, committed.decision.outcomes, strict=True):
            if item.delivery is not None and (isinstance(outcome, Accepted) or outcome == Nothing("held")):
                self._renew(item.command, item.delivery)
                if isinstance(outcome, Accepted) and (outcome.asks or outcome.makes) and committed.run is not None:
                    self._office.effects.follow(committed.run, outcome)
            if isinstance(item.input, Completed | Failed):
                self._bodies.decided(item.input.action)
        self._reconcile()
        for item, outcome in zip(batch, committed.decision.outcomes, strict=True):
            if item.delivery is not None:
                await self._insist(partial(self._settle, item, item.delivery, outcome))
            elif item.heard is not None:
                tell(item, outcome, committed.run)
            elif isinstance(outcome, Refused):
                await self._office.correspondence.late(self.key, outcome, item.input, self._run)
        await self._settle_holds()

    def _goes_on(self, one: Completed) -> bool:
        """The usual case, made short: the only body's result was stored, with the begin of one more under its command.

        Nothing is to be answered then, stopped or given up; `_afterwards` would do the same.
        """
        run = self._run
        if run is None or len(run.open) != 1 or len(self.holds) != 1 or self._stopping:
            return False
        action = run.actions[next(iter(run.open))]
        delivery = self.holds.get(action.command)
        if delivery is None or delivery.claim != action.claim or action.status != "running":
            return False
        is_only = len(self._bodies) == 1 and one.action in self._bodies and action.id != one.action
        if not is_only or self._office.is_broken(delivery):
            return False
        self._bodies.decided(one.action)
        self._bodies.begin(self._definition, run, action)
        self._office.hold(delivery, action.deadline)
        return True

    def _renew(self, command: str, delivery: Delivery) -> None:
        """The later of two deliveries stays; the other is let go without a word."""
        older = self.holds.get(command)
        if older is None or older.claim < delivery.claim:
            self.holds[command] = delivery
        if older is not None and older is not delivery:
            self._office.forget(older if older.claim < delivery.claim else delivery)

    def _reconcile(self) -> None:
        """Starts and cancels bodies until they are those that the stored run names under the claims held here."""
        run = self._run
        work = reconcile(run, {c: d.claim for c, d in self.holds.items()}, self._bodies)
        for action_id in work.cancel:
            self._bodies.cancel(action_id)
        if run is None or self._stopping:
            return
        for action in work.start:
            delivery = self.holds[action.command]
            if self._office.is_broken(delivery):
                # Another process may be about to begin the next attempt. The lease has to end, so that the command
                # comes again, here or there; until then the run is looked at.
                self._office.let_lapse(delivery)
                self._later.look_soon()
                continue
            self._bodies.begin(self._definition, run, action)

    async def _go_on(self, result: Completed | Failed) -> bool:
        """Decides a body's result in the body's task, with all that waits; False when another task does that."""
        if self._working:
            self._waiting.append(Item(result))
            return False
        self._working = True
        await self._work(result)
        return True

    async def _settle(self, item: Item, delivery: Delivery, outcome: Outcome) -> None:
        """What becomes of a delivery that was just decided, and the answer to who gave the command."""
        assert isinstance(item.input, Delivered)
        command = item.input.command
        following = settle(
            self._run,
            command.id,
            delivery.claim,
            outcome,
            broken=self._office.is_broken(delivery),
            waited_ms=self._office.now() - delivery.received_at,
            patience_ms=0 if item.input.person else PATIENCE_MS,
        )
        if isinstance(following, Again):
            self._postpone(item, delivery, following.delay_ms / 1000)
        elif isinstance(following, Silent):
            self._let_go(command.id, delivery)
        elif isinstance(following, Keep):
            self._renew(command.id, delivery)
            self._office.at_work(delivery)
            await self._office.correspondence.answer(self.key, item, outcome, self._run)
        elif isinstance(following, Bury):
            await self._bury(command.id, delivery, following.reason)
        elif isinstance(following, Forward):
            await self._move(command.id, delivery, following.lane)
        else:
            await self._office.correspondence.answer(self.key, item, outcome, self._run)
            await self._finish(command.id, delivery)

    async def _settle_holds(self) -> None:
        """Acknowledges commands without open actions; drops those that a later delivery holds (rules 3 and 4)."""
        for command, delivery in list(self.holds.items()):
            broken = self._office.is_broken(delivery)
            following = settle(self._run, command, delivery.claim, broken=broken)
            if isinstance(following, Keep) and self._run is not None:
                if not broken:
                    ends = (a.deadline for a in self._run.open_actions() if a.command == command)
                    self._office.hold(delivery, max(ends))
            elif isinstance(following, Silent):
                log.info("superseded", extra={"action": "claim_superseded", "run": str(self.key), "command": command})
                self._let_go(command, delivery)
            elif isinstance(following, Bury):
                await self._insist(partial(self._bury, command, delivery, following.reason))
            elif isinstance(following, Ack):
                await self._finish(command, delivery)

    async def _finish(self, command: str, delivery: Delivery) -> None:
        if self.holds.get(command) is delivery:
            del self.holds[command]
        await self._office.finish(delivery)

    def _let_go(self, command: str, delivery: Delivery) -> None:
        if self.holds.get(command) is delivery:
            del self.holds[command]
        self._office.forget(delivery)

    async def _bury(self, command: str, delivery: Delivery, reason: str) -> None:
        """Guarded commit (done), then DEAD, then term (rule 9); each may be repeated."""
        await self._office.correspondence.convict(self.key, command, delivery, reason)
        await delivery.term(reason)
        self._let_go(command, delivery)

    async def _move(self, command: str, delivery: Delivery, lane: str) -> None:
        """Publishes to the lane, then acknowledges, unless somebody else may have the command by now."""
        await self._office.correspondence.forward(delivery, command, lane)
        if not self._office.is_broken(delivery):
            await self._finish(command, delivery)
        else:
            self._let_go(command, delivery)

    async def _insist(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What follows a stored commit is done again until the ports take it."""
        while True:
            try:
                await work()
                return
            except PortError as error:
                await self._office.outage(self, error)

    def _postpone(self, item: Item, delivery: Delivery, delay_s: float) -> None:
        """Decided again later, on a freshly read run; its lease is kept, its slot is not."""
        self._office.free_slot(delivery)
        self._later.postpone(delivery.ack_subject, item, delay_s)

    def _again(self, item: Item) -> None:
        self._known = "stale"
        self.submit(item)

    def look_again(self) -> None:
        """Decides at once what was put off for later: for a clock that was moved on."""
        self._later.now()

    def claims_lost(self) -> None:
        """After a pause longer than the lease every claim counts as lost: the run is read before anything else."""
        self._known = "stale"
        self._look_at_once()

    def _look_at_once(self) -> None:
        self._look_due = True
        self._nudge()

    async def _look(self) -> None:
        """Reads the run by the leader's word, and lets go what another process took over."""
        self._look_due = False
        await self._insist(self._read_surely)
        self._reconcile()
        await self._settle_holds()
        if any(self._office.is_broken(d) for d in self.holds.values()) and not self._stopping:
            self._later.look_soon()

    async def _read_surely(self) -> None:
        await self._read()
        while not await self._office.lifecycle.confirmed(self.key, self._run):
            await self._read()

    # --- the end

    def _break(self, batch: Sequence[Item]) -> None:
        """The actor cannot go on: its tasks end and its deliveries lapse, so that the commands come again."""
        self._bodies.clear()
        for item in (items := (*batch, *self._waiting.empty(), *self._later.cancel())):
            tell_error(item, RunLost())
        for delivery in (*(i.delivery for i in items if i.delivery is not None), *self.holds.values()):
            self._office.forget(delivery)
        self.holds.clear()
        self._look_due = False
        self._office.drop(self)

    async def release(self, *, everything: bool = False) -> None:
        """Graceful stop: gives back the actions of every held command, once what waits is decided.

        Bodies that are coroutines are cancelled, and their actions released when they have ended. A function in a
        thread cannot be cancelled: its action is released when it returned, or with `everything`.
        """
        self._stopping = True
        for item in self._later.cancel():
            assert item.delivery is not None
            await self._office.hand_back(item.delivery)
        self._bodies.stop(everything=everything, is_async=self._is_async)
        self._nudge()

    def _is_async(self, action_id: str) -> bool:
        return self._run is None or self._definition.bodies[self._run.actions[action_id].step].is_async

    def _to_release(self) -> tuple[str, ...]:
        if not self._stopping or self._run is None:
            return ()
        claims = {c: d.claim for c, d in self.holds.items()}
        running = (a for a in self._run.open_actions() if a.status == "running" and a.id not in self._bodies)
        return tuple(a.id for a in running if claims.get(a.command) == a.claim)

    async def give_back(self) -> None:
        """After `release` was decided: the deliveries go back to the queue at once (rule 4)."""
        for command, delivery in list(self.holds.items()):
            del self.holds[command]
            following = give_back(self._run, command, delivery.claim, broken=self._office.is_broken(delivery))
            if isinstance(following, Ack):
                await self._office.finish(delivery)
            elif isinstance(following, GiveBack):
                await self._office.hand_back(delivery)
            else:
                self._office.forget(delivery)
