"""Side effects of one process: intents before calls, outcomes after them, and asking the other side.

Every intent and outcome goes through the run's actor. A call and its outcome belong to the process, not to the body: a
body that is cancelled leaves the call to its end, and what came of it is stored all the same.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from waybook.agents.effects import (
    Deadline,
    DeadlinePassed,
    Done,
    EffectAdapter,
    EffectCall,
    NotDone,
    NotThere,
    UnknownEffect,
    Unsure,
)
from waybook.engine.digest import canonical, idempotency_key
from waybook.engine.inputs import Accepted, Nothing, Refused
from waybook.engine.intents import UNDO, Effect, Intend, Park, Settle, SettledBy
from waybook.engine.operations import (
    CLOCK_MARGIN_MS,
    Wait,
    operation_key,
    verdict,
)
from waybook.engine.ports import Clock, CommandQueue, Notes, Objects, PortError
from waybook.engine.run import Action, Operation, Run
from waybook.events.command import Command
from waybook.events.errors import RetryableError
from waybook.events.subjects import ANY, RunKey, command_subject, digest_token
from waybook.services.walker.aggregates import Aggregates
from waybook.services.walker.body_effects import BodyEffects, refuse
from waybook.services.walker.item import Item, Told
from waybook.services.walker.ledgers import BodyLedgers

log = logging.getLogger(__name__)

PATIENCE_MS = 5_000
"""A body that would wait longer for the other side gives its slot and its lease back."""

MOMENT_MS = 500
"""So long it waits even when others wait for it: less than what parking and being woken costs."""

LARGEST_PARAMS = 64 * 1024
LARGEST_EVIDENCE = 8 * 1024
"""Bytes of JSON that stand in an event; larger parameters go to the object bucket, larger evidence is cut down."""

FIND_S = 30.0
"""How long the other side may take to say what came of a call."""

PORT_PAUSE_S = 0.5
REFERENCE = "waybook:reference"
"""The one parameter of an intent whose parameters lie in the object bucket under that name."""


class RunLost(RetryableError):
    """The run's actor broke before it decided; nothing is known of what was put before it."""


class Put(msgspec.Struct, frozen=True):
    """What desks need of their walker: putting an input before a run, starting a task that it waits for at its end,
    and how a body may spend seconds in which it waits for the other side (see Solitude.pause).
    """

    submit: Callable[[RunKey, Item], None]
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    pause: Callable[[float], Awaitable[bool]]


class EffectsDesk:
    """Makes the side effects of all runs in this process. `adapters` by the name that bodies call them by."""

    def __init__(
        self,
        adapters: Mapping[str, EffectAdapter],
        put: Put,
        *,
        commands: CommandQueue,
        notes: Notes,
        objects: Objects,
        clock: Clock,
        margin_ms: int = CLOCK_MARGIN_MS,
    ) -> None:
        self._adapters = adapters
        self._put = put
        self._commands = commands
        self._notes = notes
        self._objects = objects
        self._clock = clock
        self._margin_ms = margin_ms
        self._turns: dict[tuple[RunKey, str], asyncio.Lock] = {}
        self.aggregates: Aggregates | None = None

    def of(self, run: Run, action: Action) -> BodyEffects:
        """What is injected into a body, anew for each time it begins."""
        return BodyEffects(self, run, action)

    def ledgers(self, run: Run, action: Action) -> BodyLedgers:
        """What is injected into a body that shares amounts with other runs."""
        assert self.aggregates is not None, "the walker says where ledgers are kept"
        return BodyLedgers(self.aggregates, self._clock, run, action)

    def adapter(self, name: str) -> EffectAdapter:
        """The adapter for an effect or its undoing. Raises UnknownEffect."""
        found = self._adapters.get(name.removeprefix(UNDO))
        if found is None:
            known = ", ".join(sorted(self._adapters)) or "none"
            raise UnknownEffect(f"nothing provides the side effect {name!r} here; there are {known}")
        return found

    # --- for a body

    async def once(self, run: Run, action: Action, intend: Intend) -> Told:
        """Intends, calls and settles where nothing is known of the operation yet; else tells what is known.

        One at a time for each operation. When the body is cancelled what was begun goes on to its end.
        """
        body = asyncio.current_task()
        answer: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._put.spawn(self._once(run, action, intend, answer))
        assert body is not None
        return await answer

    async def _once(self, run: Run, action: Action, intend: Intend, answer: "asyncio.Future[Told]") -> None:
        adapter = self.adapter(intend.name)
        try:
            async with self._turn(run.key, operation_key(run, action, intend)):
                deadline = Deadline(intend.call_ms)
                told = await self._tell(run.key, intend)
                if told.run is not None and told.outcome in (Accepted(), Nothing("intended")):
                    operation = told.run.operations[operation_key(told.run, action, intend)]
                    if told.outcome != Accepted():  # it may have been stored long ago
                        deadline.shorten(operation.intent.deadline - self._clock.now())
                    told = await self._make(told.run, operation, adapter, deadline, answer)
        except Exception as error:  # noqa: BLE001 - it is the body's
            if not answer.done():
                answer.set_exception(error)
            return
        if not answer.done():
            answer.set_result(told)

    async def _make(
        self,
        run: Run,
        operation: Operation,
        adapter: EffectAdapter,
        deadline: Deadline,
        body: "asyncio.Future[Told] | None",
    ) -> Told:
        """Calls for a stored intent, of a body or of a command, and stores what came of it."""
        if body is not None and body.cancelled():
            result: Done | NotDone | Unsure = NotDone("its step ended before the call", {"reason": "cancelled"})
        else:
            result = await self._calling(run, operation, adapter, deadline)
        settle = Settle(
            key=operation.intent.key,
            outcome=_OUTCOMES[type(result)],
            by="call",
            evidence=_evidence(result),
            intent=operation.intended_as,
            ask_again=not isinstance(result, Unsure) or result.again,
        )
        return await self.settle(run.key, settle)

    async def _calling(
        self, run: Run, operation: Operation, adapter: EffectAdapter, deadline: Deadline
    ) -> Done | NotDone | Unsure:
        try:
            call = await self._call_of(run, operation)
        except Exception as error:  # noqa: BLE001 - nothing was called
            return NotDone(f"its parameters cannot be read: {error}", retryable=False)
        try:
            deadline.check()
            async with asyncio.timeout(deadline.remaining_s + 1):
                if operation.intent.name.startswith(UNDO):
                    evidence = run.operations[operation.intent.key.removeprefix(UNDO)].evidence
                    return await adapter.undo(call, evidence, deadline)
                return await adapter.call(call, deadline)
        except DeadlinePassed as error:
            return NotDone(str(error), {"reason": "deadline_passed"})
        except TimeoutError:
            return Unsure("no answer until the call's deadline")
        except Exception as error:
            log.warning(
                "a side effect's call ended with an error",
                exc_info=error,
                extra={"action": "effect_call_broke", "run": str(run.key), "operation": call.key},
            )
            return Unsure(f"{type(error).__name__}: {error}")

    async def settle(self, key: RunKey, one: Settle) -> Told:
        """Stores an outcome, whatever it takes; what waits for it is taken up by a command."""
        while True:
            try:
                told = await self._tell(key, one)
                break
            except RunLost as error:
                log.error("an outcome waits for its run", extra={"action": "outcome_waits", "error": str(error)})
                await asyncio.sleep(PORT_PAUSE_S)
        if told.outcome == Nothing("no_worker") and told.run is not None:
            await self._publish_settle(key, one, told.run.definition)
        elif isinstance(told.outcome, Accepted) and told.run is not None:
            if told.outcome.wakes:
                await self._publish_settle(key, one, ANY)
            self.follow(told.run, told.outcome)
        return told

    async def resolve(self, run: Run, action: Action, operation: Operation) -> None:
        """Asks what came of an earlier intent, and returns when it is worth intending again.

        When that takes longer the action is parked: then this never returns, and the body is cancelled.
        """
        adapter, key = self.adapter(operation.intent.name), operation.intent.key
        if operation.disputed:
            await self._park(run, Park(action.id, key, None))
            return
        said = await self._judge(run, operation, adapter)
        if isinstance(said, Settle):
            await self.settle(run.key, said)
            return
        if said.until is None or not await self._waited(said.until - self._clock.now()):
            await self._park(run, Park(action.id, key, said.until))

    async def _waited(self, left_ms: int) -> bool:
        """Waits for the other side where that is worth keeping a slot for, and its process, if it is alone there."""
        if left_ms <= MOMENT_MS:
            await asyncio.sleep(max(100, left_ms) / 1000)
            return True
        return left_ms <= PATIENCE_MS and await self._put.pause(left_ms / 1000)

    async def _park(self, run: Run, park: Park) -> None:
        told = await self._tell(run.key, park)
        if isinstance(told.outcome, Refused):
            refuse(told.outcome)
        if isinstance(told.outcome, Accepted):
            await asyncio.Event().wait()  # the actor cancels the body

    async def note_changed(self, key: RunKey, operation: Operation, digest: str) -> None:
        """A diagnostic: the body gave other parameters than those that the side effect was made with."""
        record = {
            "kind": "effect_parameters_changed",
            "run": str(key),
            "operation": operation.intent.key,
            "made_with": operation.intent.digest,
            "given": digest,
        }
        await self._notes.trace(key.tenant, "effect", msgspec.json.encode(record))

    # --- reconciling

    def follow(self, run: Run, accepted: Accepted) -> None:
        """Does, beside all else, what a stored decision asks for: asks other sides, and calls where no body does.

        What they say comes back as a command, and as a fact.
        """
        for name in accepted.asks:
            self._put.spawn(self._ask(run, run.operations[name]))
        for name in accepted.makes:
            self._put.spawn(self._make_unbidden(run, run.operations[name]))

    async def _make_unbidden(self, run: Run, operation: Operation) -> None:
        try:
            adapter = self.adapter(operation.intent.name)
        except UnknownEffect as error:
            settle = Settle(operation.intent.key, "failed", "call", {"text": str(error)}, operation.intended_as)
            await self.settle(run.key, settle)
            return
        deadline = Deadline(adapter.call_ms)
        deadline.shorten(operation.intent.deadline - self._clock.now())
        await self._make(run, operation, adapter, deadline, None)

    async def _ask(self, run: Run, operation: Operation) -> None:
        try:
            adapter = self.adapter(operation.intent.name)
        except UnknownEffect as error:
            log.error("%s", error, extra={"action": "effect_unknown", "run": str(run.key)})
            return
        if operation.disputed:
            return
        said = await self._judge(run, operation, adapter)
        if isinstance(said, Settle):
            await self._publish_settle(run.key, said, ANY)
        elif said.until is None or operation.outcome is None:
            unknown = Settle(operation.intent.key, "unknown", "find", {}, operation.intended_as, said.until is not None)
            await self.settle(run.key, unknown)

    async def _judge(self, run: Run, operation: Operation, adapter: EffectAdapter) -> Settle | Wait:
        """What the other side's answer means; asking never fails."""
        asked_at = self._clock.now()
        found = await self._finding(run, operation, adapter)
        said = verdict(
            "found" if isinstance(found, Done) else "absent" if isinstance(found, NotThere) else "unsure",
            authoritative=adapter.find_is_authoritative,
            asked_at=asked_at,
            deadline=operation.intent.deadline,
            settle_ms=adapter.settle_ms,
            margin_ms=self._margin_ms,
            again=not isinstance(found, Unsure) or found.again,
        )
        if isinstance(said, Wait):
            return said
        by: SettledBy = "find"
        return Settle(operation.intent.key, said, by, _evidence(found), operation.intended_as)

    async def _finding(self, run: Run, operation: Operation, adapter: EffectAdapter) -> Done | NotThere | Unsure:
        try:
            call = await self._call_of(run, operation)
            async with asyncio.timeout(FIND_S):
                return await adapter.find(call)
        except Exception as error:  # noqa: BLE001 - whatever it raises, the other side did not answer
            log.warning(
                "asking for a side effect failed: %s",
                error,
                extra={"action": "effect_find_failed", "run": str(run.key), "operation": operation.intent.key},
            )
            return Unsure(f"{type(error).__name__}: {error}")

    # --- underneath

    async def params(self, key: RunKey, params: bytes) -> dict[str, Any]:
        """Parameters as an intent holds them."""
        if len(params) <= LARGEST_PARAMS:
            return msgspec.json.decode(params, type=dict[str, Any])
        name = f"effects/{key.tenant}/{key.agent}/{key.run}/{hashlib.sha256(params).hexdigest()}"
        await self._objects.put(name, params)
        return {REFERENCE: name}

    async def _call_of(self, run: Run, operation: Operation) -> EffectCall:
        intent = operation.intent
        params: Mapping[str, Any] = intent.params
        while REFERENCE in params:
            try:
                params = msgspec.json.decode(await self._objects.get(intent.params[REFERENCE]), type=dict[str, Any])
            except PortError as error:
                log.warning("parameters wait for a port", extra={"action": "params_wait", "error": str(error)})
                await asyncio.sleep(PORT_PAUSE_S)
        undoes = intent.key.removeprefix(UNDO) if intent.key.startswith(UNDO) else None
        identity = idempotency_key(run.key, intent.key)
        return EffectCall(str(run.key), intent.key, intent.name, params, identity, undoes)

    async def _tell(self, key: RunKey, one: Effect) -> Told:
        heard: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._put.submit(key, Item(one, heard=heard))
        return await heard

    async def _publish_settle(self, key: RunKey, one: Settle, lane: str) -> None:
        payload = {
            "operation": one.key,
            "outcome": one.outcome,
            "by": one.by,
            "evidence": one.evidence,
            "intent": one.intent,
        }
        name = digest_token(f"{key}/{one.key}/{one.intent}/{one.outcome}/{lane}")
        command = Command(
            id=f"settle-{name}",
            verb="settle",
            issued_at=self._clock.now(),
            actor="effects",
            payload=msgspec.Raw(msgspec.json.encode(payload)),
        )
        subject = command_subject(key, "settle", issuer="relay", lane=lane)
        while True:
            try:
                await self._commands.publish(subject, msgspec.json.encode(command), command=command.id)
                return
            except PortError as error:
                log.warning("an outcome waits for a port", extra={"action": "settle_waits", "error": str(error)})
                await asyncio.sleep(PORT_PAUSE_S)

    @asynccontextmanager
    async def _turn(self, key: RunKey, operation: str) -> AsyncIterator[None]:
        name = (key, operation)
        lock = self._turns.setdefault(name, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and self._turns.get(name) is lock:
                del self._turns[name]


_OUTCOMES: Mapping[type, Any] = {Done: "succeeded", NotDone: "failed", Unsure: "unknown", NotThere: "absent"}


def _evidence(result: Done | NotDone | Unsure | NotThere) -> dict[str, Any]:
    """What of an adapter's answer an event holds."""
    evidence = dict(result.evidence)
    if isinstance(result, NotDone | Unsure):
        evidence["text"] = result.text[:1000]
    if isinstance(result, NotDone):
        evidence["retryable"] = result.retryable
        if result.retry_after_ms is not None:
            evidence["retry_after_ms"] = result.retry_after_ms
    try:
        stored = canonical(evidence)
    except (TypeError, ValueError) as error:
        return {"text": f"the evidence is not JSON: {error}"[:1000]}
    if len(stored) <= LARGEST_EVIDENCE:
        return msgspec.json.decode(stored, type=dict[str, Any])
    return {"cut": stored[:LARGEST_EVIDENCE].decode(errors="replace")}
