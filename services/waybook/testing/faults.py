"""Faults at the boundaries of a process: what happens right before and right after each call of a port.

Nothing is patched: the ports are wrapped, and the program under test gets the wrapped ones. A test arms what is to
happen where, usually the death of its own process:

    faults = Faults()
    faults.arm("append.after", kill, nth=3)
    walker = Walker(agents, faulty_ports(ports, faults), provides={Faults: faults})
"""

import asyncio
import fnmatch
import inspect
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from waybook.agents.effects import Deadline, Done, EffectAdapter, EffectCall, NotDone, NotThere, Unsure
from waybook.engine.ports import (
    CommandQueue,
    ConsumerSpec,
    Delivery,
    Draft,
    Notes,
    Objects,
    Outgoing,
    Record,
    Replies,
    StateLog,
)
from waybook.events.engine import Claim
from waybook.events.subjects import RunKey
from waybook.services.walker.walker import WalkerPorts

Boundary: TypeAlias = Literal[
    "append.before", "append.sent", "append.after",
    "history.before", "tail.before",
    "pull.after", "publish.before", "publish.after",
    "ack.before", "ack.after", "nak.before", "nak.after", "term.before", "term.after",
    "answer.before", "answer.after", "audit.before", "audit.after", "bury.before", "bury.after", "trace.before",
    "put.before", "put.after", "get.before",
    "arm.before", "arm.after", "disarm.before", "disarm.after", "fired", "fire.before", "fire.after",
    "told.before", "told.after",
    "call.before", "call.after", "find.before", "undo.before", "undo.after",
    "step.begun", "step.running", "step.ended",
]  # fmt: skip
"""Where a fault may stand.

`append.before`: decided, nothing sent. `append.sent`: the bytes are with the server and the answer was not read.
`append.after`: stored, and the caller has not seen the answer. The verbs of a delivery are only written to the
connection when `.after` is reached. `arm.*`, `disarm.*`, `fired` and `fire.*` (a fire's acknowledgement) are those of
a scheduler's timers, `told.*` of the commits that it has looked at (`faulty_scheduler`). `call.*`, `find.*` and `undo.*` are those of `FaultyEffect`. `step.*` are for
bodies that call `Faults.reached` themselves, and for the crash kit, which does it for them.
"""

Action: TypeAlias = Callable[[], Awaitable[None] | None]

BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)


def kill() -> None:
    """Ends this process as the kernel would: SIGKILL, nothing is flushed or closed."""
    os.kill(os.getpid(), signal.SIGKILL)


def pause() -> None:
    """Stops this whole process, threads included, until someone sends SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


def failing(error: Exception) -> Action:
    """An action that raises `error` out of the call."""

    def act() -> None:
        raise error

    return act


class _Armed(msgspec.Struct):
    boundary: Boundary
    action: Action
    nth: int
    where: str
    times: int
    seen: int = 0

    def due(self, boundary: Boundary, where: str) -> bool:
        if boundary != self.boundary or not fnmatch.fnmatchcase(where, self.where):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class Faults:
    """What is armed, and what was reached. One object serves all ports of a process."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []
        self.passed: list[tuple[Boundary, str]] = []
        self.dead = False

    def arm(self, boundary: Boundary, action: Action, *, nth: int = 1, where: str = "*", times: int = 1) -> None:
        """Runs `action` when `boundary` is reached for the `nth` time (from 1) with a subject or name like `where`.

        `where` is a pattern as of `fnmatch`. The action then runs `times` times in a row.
        """
        if boundary not in BOUNDARIES:
            raise ValueError(f"there is no boundary {boundary!r}; there are {', '.join(BOUNDARIES)}")
        self._armed.append(_Armed(boundary, action, nth, where, times))

    def disarm(self) -> None:
        """Nothing happens from now on."""
        self._armed.clear()

    async def reached(self, boundary: Boundary, where: str) -> None:
        """Says that the program stands at a boundary; runs what is armed there."""
        if self.dead:
            await asyncio.Event().wait()  # nothing that a dead process does reaches anybody
        self.passed.append((boundary, where))
        for armed in [a for a in self._armed if a.due(boundary, where)]:
            result = armed.action()
            if inspect.isawaitable(result):
                await result


def faulty_ports(ports: WalkerPorts, faults: Faults) -> WalkerPorts:
    """The ports of a walker, each wrapped; clock and heartbeat stay as they are."""
    return msgspec.structs.replace(
        ports,
        state=FaultyStateLog(ports.state, faults),
        commands=FaultyCommandQueue(ports.commands, faults),
        notes=FaultyNotes(ports.notes, faults),
        replies=FaultyReplies(ports.replies, faults),
        objects=FaultyObjects(ports.objects, faults),
    )


class FaultyStateLog:
    """A StateLog with boundaries around it, named by the run's subject."""

    def __init__(self, inner: StateLog, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    @property
    def stream(self) -> str:
        """See StateLog."""
        return self._inner.stream

    async def fitting(self, subject: str, payload: bytes) -> bytes:
        """See StateLog."""
        return await self._inner.fitting(subject, payload)

    async def append(self, draft: Draft, *, tries: int | None = None) -> int:
        """See StateLog."""
        await self._faults.reached("append.before", draft.subject)
        under_way = asyncio.ensure_future(self._inner.append(draft, tries=tries))
        try:
            # Some turns of the loop: the append is handed over, gathered, and written to the socket.
            for _ in range(4):
                await asyncio.sleep(0)
            await self._faults.reached("append.sent", draft.subject)
            sequence = await under_way
        finally:
            under_way.cancel()
        await self._faults.reached("append.after", draft.subject)
        return sequence

    async def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        """See StateLog."""
        await self._faults.reached("history.before", subject)
        async for record in self._inner.history(subject, after):
            yield record

    async def tail(self, subject: str) -> Record | None:
        """See StateLog."""
        await self._faults.reached("tail.before", subject)
        return await self._inner.tail(subject)


class FaultyCommandQueue:
    """A CommandQueue with boundaries around it and around the verbs of its deliveries, named by the subject."""

    def __init__(self, inner: CommandQueue, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def ensure_consumers(self, specs: Sequence[ConsumerSpec], *, recreate: bool = False) -> None:
        """See CommandQueue."""
        await self._inner.ensure_consumers(specs, recreate=recreate)

    async def publish(
        self, subject: str, payload: bytes, *, command: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        """See CommandQueue."""
        await self._faults.reached("publish.before", subject)
        stored = await self._inner.publish(subject, payload, command=command, headers=headers)
        await self._faults.reached("publish.after", subject)
        return stored

    async def publish_many(self, messages: Sequence[Outgoing]) -> Sequence[bool]:
        """See CommandQueue."""
        for message in messages:
            await self._faults.reached("publish.before", message.subject)
        stored = await self._inner.publish_many(messages)
        for message in messages:
            await self._faults.reached("publish.after", message.subject)
        return stored

    async def pull(self, consumer: str, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """See CommandQueue."""
        deliveries = await self._inner.pull(consumer, batch, timeout_s)
        for delivery in deliveries:
            await self._faults.reached("pull.after", delivery.subject)
        return [FaultyDelivery(delivery, self._faults) for delivery in deliveries]

    async def holds(self, sequence: int) -> bool:
        """See CommandQueue."""
        return await self._inner.holds(sequence)

    async def is_taken(self, consumer: str) -> bool:
        """See CommandQueue."""
        return await self._inner.is_taken(consumer)


class FaultyDelivery:
    """A Delivery with boundaries around its verbs."""

    def __init__(self, inner: Delivery, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self.subject: str = inner.subject
        self.payload: bytes = inner.payload
        self.claim: Claim = inner.claim
        self.received_at: int = inner.received_at
        self.ack_subject: str = inner.ack_subject

    @property
    def headers(self) -> Mapping[str, str]:
        """See Delivery."""
        return self._inner.headers

    async def ack(self) -> None:
        """See Delivery."""
        await self._faults.reached("ack.before", self.subject)
        await self._inner.ack()
        await self._faults.reached("ack.after", self.subject)

    async def nak(self, delay_s: float = 0.0) -> None:
        """See Delivery."""
        await self._faults.reached("nak.before", self.subject)
        await self._inner.nak(delay_s)
        await self._faults.reached("nak.after", self.subject)

    async def term(self, reason: str) -> None:
        """See Delivery."""
        await self._faults.reached("term.before", self.subject)
        await self._inner.term(reason)
        await self._faults.reached("term.after", self.subject)

    async def in_progress(self) -> None:
        """See Delivery."""
        await self._inner.in_progress()


class FaultyNotes:
    """Notes with boundaries around them."""

    def __init__(self, inner: Notes, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def audit(self, tenant: str, record: str, payload: bytes) -> None:
        """See Notes."""
        await self._faults.reached("audit.before", record)
        await self._inner.audit(tenant, record, payload)
        await self._faults.reached("audit.after", record)

    async def trace(self, tenant: str, kind: str, payload: bytes) -> None:
        """See Notes."""
        await self._faults.reached("trace.before", kind)
        await self._inner.trace(tenant, kind, payload)

    async def bury(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> None:
        """See Notes."""
        await self._faults.reached("bury.before", subject)
        await self._inner.bury(subject, payload, headers)
        await self._faults.reached("bury.after", subject)

    async def buried(self, key: RunKey) -> Sequence[Record]:
        """See Notes."""
        return await self._inner.buried(key)


class FaultyReplies:
    """Replies with boundaries around them."""

    def __init__(self, inner: Replies, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def answer(self, subject: str, payload: bytes) -> None:
        """See Replies."""
        await self._faults.reached("answer.before", subject)
        await self._inner.answer(subject, payload)
        await self._faults.reached("answer.after", subject)


class FaultyObjects:
    """Objects with boundaries around them."""

    def __init__(self, inner: Objects, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def put(self, name: str, data: bytes) -> None:
        """See Objects."""
        await self._faults.reached("put.before", name)
        await self._inner.put(name, data)
        await self._faults.reached("put.after", name)

    async def get(self, name: str) -> bytes:
        """See Objects."""
        await self._faults.reached("get.before", name)
        return await self._inner.get(name)


class FaultyEffect:
    """An EffectAdapter with boundaries around its calls, named by the effect."""

    def __init__(self, name: str, inner: EffectAdapter, faults: Faults) -> None:
        self._name = name
        self._inner = inner
        self._faults = faults
        self.call_ms: int = inner.call_ms
        self.settle_ms: int = inner.settle_ms
        self.find_is_authoritative: bool = inner.find_is_authoritative

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        await self._faults.reached("call.before", self._name)
        answer = await self._inner.call(call, deadline)
        await self._faults.reached("call.after", self._name)
        return answer

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """See EffectAdapter."""
        await self._faults.reached("find.before", self._name)
        return await self._inner.find(call)

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        await self._faults.reached("undo.before", self._name)
        answer = await self._inner.undo(call, evidence, deadline)
        await self._faults.reached("undo.after", self._name)
        return answer
