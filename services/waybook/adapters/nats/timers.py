"""TIMERS on JetStream: scheduled messages in a work queue (ADR-51)."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.consumers import ACK_WAIT_S, Consumers
from waybook.adapters.nats.delivery import ack_fields
from waybook.adapters.nats.errors import CONFLICT, SEQUENCE_TAKEN, ApiError, port_error
from waybook.adapters.nats.frames import header_block, parse_headers
from waybook.adapters.nats.group_commit import read_ack
from waybook.adapters.nats.pull import Puller, Raw
from waybook.engine.ports import ConsumerSpec, PortUnavailable, TimerRef
from waybook.events.engine import TimerClass
from waybook.events.headers import EXPECTED_STREAM, EXPECTED_SUBJECT_SEQUENCE
from waybook.events.subjects import RunKey, parse_timer_subject, timer_subject

STREAM = "TIMERS"
DUE = "Waybook-Due"
CLASSES: tuple[TimerClass, ...] = ("send", "deadline", "retry", "wait")
PAGE_SUBJECTS = 100_000  # what one answer holds at most


class _Subjects(msgspec.Struct):
    subjects: dict[str, int] | None = None


class _Info(msgspec.Struct):
    state: _Subjects
    total: int = 0


class _Purged(msgspec.Struct):
    success: bool = False


class NatsFire:
    """The port Fire. Its verbs are sent without an answer: a lost one brings the fire again."""

    __slots__ = ("_connection", "_reply", "fired_at", "timer")

    def __init__(self, connection: Connection, timer: TimerRef, fired_at: int, reply: bytes) -> None:
        self._connection = connection
        self._reply = reply.decode()
        self.timer = timer
        self.fired_at = fired_at

    async def ack(self) -> None:
        """It was handed over; TIMERS drops it."""
        self._say(b"+ACK")

    async def nak(self, delay_s: float = 0.0) -> None:
        """It comes again after `delay_s`."""
        self._say(b'-NAK {"delay": %d}' % int(delay_s * 1e9) if delay_s > 0 else b"-NAK")

    def _say(self, word: bytes) -> None:
        try:
            self._connection.publish(self._reply, word)
        except PortUnavailable:
            return  # it comes again


class NatsTimers:
    """The port Timers on one stream. `ack_wait_s` is the lease of a fire, in seconds."""

    def __init__(self, connection: Connection, *, stream: str = STREAM, ack_wait_s: float = ACK_WAIT_S) -> None:
        self._connection = connection
        self._stream = stream
        self._ack_wait_s = ack_wait_s
        self._consumers = Consumers(connection, stream, ack_wait_s)
        self._pullers: dict[str, Puller] = {}

    async def ensure_consumers(self, *, recreate: bool = False) -> None:
        """See Timers."""
        specs = tuple(ConsumerSpec(consumer_of(kind), f"timer.fire.{kind}.>") for kind in CLASSES)
        await self._consumers.ensure(specs, recreate=recreate)

    async def arm(self, timer: TimerRef, at: int | None = None) -> bool:
        """See Timers. Armed with expected 0 on a subject of its own, so that nothing replaces it (R3.2)."""
        headers = {
            "Nats-Schedule": f"@at {stamp(timer.due if at is None else at)}",
            "Nats-Schedule-Target": timer_subject(timer.key, timer.name, timer.timer_class, fired=True),
            DUE: str(timer.due),
            EXPECTED_STREAM: self._stream,
            EXPECTED_SUBJECT_SEQUENCE: "0",
        }
        subject = timer_subject(timer.key, timer.name, timer.timer_class)
        answer = await self._connection.request(subject, b"", header_block(headers))
        ack = read_ack(answer)
        if ack.error is None:
            return True
        if ack.error.err_code == SEQUENCE_TAKEN:
            return False
        if answer.status or ack.error.err_code in CONFLICT:  # another append of this subject is under way
            raise PortUnavailable(f"{subject} was not stored; is {self._stream} there and its leader up?")
        raise port_error(ack.error, f"arm a timer in {self._stream}")

    async def cancel(self, key: RunKey, name: str) -> None:
        """See Timers. A purge of its subjects leaves nothing behind, a guarded cancel would (P16)."""
        for fired in (False, True):
            pattern = timer_subject(key, name, "*", fired=fired)
            await self._connection.ask(f"STREAM.PURGE.{self._stream}", {"filter": pattern}, _Purged)

    async def pull(self, timer_class: TimerClass, batch: int, timeout_s: float) -> Sequence[NatsFire]:
        """See Timers."""
        name = consumer_of(timer_class)
        puller = self._pullers.get(name)
        if puller is None:
            puller = self._pullers[name] = Puller(self._connection, self._stream, name, self._ack_wait_s)
        raws = await puller.pull(batch, timeout_s)
        if puller.deleted:
            puller.forget()
            await self.ensure_consumers()
        return [self._fire(raw) for raw in raws]

    def _fire(self, raw: Raw) -> NatsFire:
        key, name, kind = parse_timer_subject(raw.subject.decode())
        due = int(parse_headers(raw.headers).get(DUE, "0"))
        _, _, _, stored_ns = ack_fields(raw.ack_subject)
        timer = TimerRef(key, name, msgspec.convert(kind, TimerClass), due)
        return NatsFire(self._connection, timer, stored_ns // 1_000_000, raw.ack_subject)

    async def is_served(self) -> bool:
        """Whether a scheduler takes fires just now. Raises PortUnavailable."""
        return await self._consumers.is_taken(consumer_of("retry"))

    async def standing(self) -> frozenset[tuple[RunKey, str]]:
        """See Timers. The server tells its subjects in pages of 100,000."""
        found: set[tuple[RunKey, str]] = set()
        offset = 0
        while True:
            call = f"STREAM.INFO.{self._stream}"
            info = await self._connection.api(call, {"subjects_filter": "timer.>", "offset": offset}, _Info)
            if isinstance(info, ApiError):
                raise port_error(info, f"subjects of {self._stream}")
            subjects = info.state.subjects or {}
            found.update(parse_timer_subject(subject)[:2] for subject in subjects)
            offset += PAGE_SUBJECTS
            if len(subjects) < PAGE_SUBJECTS:
                return frozenset(found)


def consumer_of(timer_class: TimerClass) -> str:
    """The durable of a class's fires."""
    return f"fire_{timer_class}"


def stamp(ms: int) -> str:
    """RFC 3339 with milliseconds, UTC."""
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
