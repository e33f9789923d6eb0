"""What the engine's shell needs from outside, one Protocol a need.

Every adapter passes the same contract tests (`tests/contract`). Errors of a port are `PortError`s: they say
nothing about a step and are never stored as its failure.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Protocol

import msgspec

from waybook.events.engine import Claim, TimerClass
from waybook.events.errors import RetryableError, TerminalError
from waybook.events.subjects import RunKey


class PortError(RetryableError):
    """An outside part does not answer or refuses for reasons of its own; nothing was decided."""


class PortUnavailable(PortError):
    """The server is away, has no quorum, or did not answer in time."""


class StreamFull(PortError):
    """A stream reached its limit and refuses new messages (`discard: new`)."""


class OutcomeUnknown(PortError):
    """Whether the message was stored could not be learned within the allowed tries."""


class PortMisconfigured(TerminalError):
    """The server refuses for good: permissions, a missing stream, a wrong setting. The message names it."""


class AppendConflict(RetryableError):
    """Another commit took the expected place; reload and decide again."""


class CommitTooLarge(TerminalError):
    """A commit is over 256 KiB or one of its events over 768 KiB; the message names the field that fills it."""


class Draft(msgspec.Struct, frozen=True):
    """A commit ready to be stored: the bytes stay as they are until its outcome is known.

    `expected` is the sequence of the last commit on `subject` (0: none yet). `headers` hold everything but the
    guard, which the port adds. `commit` is the commit id, also in the headers.
    """

    subject: str
    expected: int
    payload: bytes
    headers: Mapping[str, str]
    commit: str


class Record(msgspec.Struct, frozen=True):
    """A stored message. `stored_at` is the server's time in milliseconds since the epoch, UTC."""

    subject: str
    sequence: int
    payload: bytes
    headers: Mapping[str, str]
    stored_at: int


class StateLog(Protocol):
    """STATE: guarded appends and histories, one literal subject a run."""

    @property
    def stream(self) -> str:
        """Name of the stream, the first half of a position."""
        ...

    async def fitting(self, subject: str, payload: bytes) -> bytes:
        """A commit's bytes as they are to be appended: fields too large for it are kept aside, and stored on return.

        `history` gives them back in their places. To be asked where `waybook.events.large_fields.needs_split` says
        so. Raises CommitTooLarge for an event over 768 KiB, PortError.
        """
        ...

    def append(self, draft: Draft, *, tries: int | None = None) -> Awaitable[int]:
        """Stores a commit and returns its sequence in the stream.

        An unknown outcome is settled by asking the leader for the successor of `draft.expected` and sending
        the same bytes again, without bound when `tries` is None. Raises AppendConflict when another commit
        stands in its place, OutcomeUnknown after `tries`, StreamFull, PortMisconfigured, CommitTooLarge.
        """
        ...

    def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        """The subject's commits with a sequence above `after`, in order, read page by page.

        It may lag behind the leader on a replicated stream. Raises PortUnavailable, LostField.
        """
        ...

    async def tail(self, subject: str) -> Record | None:
        """The subject's last commit by the leader's word, as it is stored, or None. Raises PortUnavailable."""
        ...


class Delivery(Protocol):
    """One delivery of a command; `claim` orders the deliveries of one command.

    None of the verbs may be used by a superseded holder: JetStream honours them from old deliveries (R1.1). None
    waits for an answer or raises for a server that is away: what is lost comes again as a delivery.
    """

    subject: str
    payload: bytes
    claim: Claim
    received_at: int  # when COMMANDS stored it, milliseconds since the epoch, UTC
    ack_subject: str  # names this delivery to the heartbeat

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def ack(self) -> None: ...
    async def nak(self, delay_s: float = 0.0) -> None: ...
    async def term(self, reason: str) -> None: ...
    async def in_progress(self) -> None: ...


class ConsumerSpec(msgspec.Struct, frozen=True):
    """A durable consumer of COMMANDS: its name and the subjects it takes. Filters must be disjoint.

    `idle_s`: it is removed when nobody pulled from it for so long, None: never. Its commands stay.
    """

    name: str
    filter: str
    idle_s: float | None = None


CTL_ANY = ConsumerSpec("ctl_any", "cmd.ctl.any.>")
NEW_ANY = ConsumerSpec("new_any", "cmd.new.any.>")
STEP_ANY = ConsumerSpec("step_any", "cmd.step.any.>")
ANY_LANE = (CTL_ANY, NEW_ANY, STEP_ANY)
"""What every walker takes from: decisions, starts, offered steps."""


LANE_IDLE_S = 7 * 24 * 3600.0
"""Every definition has a lane, and most come and go."""


def lane_consumer(definition: str) -> ConsumerSpec:
    """The consumer of the lane of one definition, named by its content hash."""
    return ConsumerSpec(f"lane_{definition}", f"cmd.*.{definition}.>", LANE_IDLE_S)


class Outgoing(msgspec.Struct, frozen=True):
    """A command to be stored, once for each `command` id."""

    subject: str
    payload: bytes
    command: str
    headers: Mapping[str, str] = {}


class CommandQueue(Protocol):
    """COMMANDS: publishing requests and taking them under a lease."""

    async def ensure_consumers(self, specs: Sequence[ConsumerSpec], *, recreate: bool = False) -> None:
        """Makes the durables that are missing, and makes them again when they are deleted later on.

        `recreate` makes all of them anew, so that every unacknowledged command is delivered at once and with a
        larger claim: for the one owner of an exclusive installation, at its start. Raises PortUnavailable,
        PortMisconfigured.
        """
        ...

    async def publish(
        self, subject: str, payload: bytes, *, command: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        """Stores a command; False when its id was stored before within the duplicate window.

        Raises StreamFull, PortUnavailable (outcome unknown: publish again with the same id), PortMisconfigured.
        """
        ...

    async def publish_many(self, messages: Sequence[Outgoing]) -> Sequence[bool]:
        """Stores many commands at a fraction of the price; False where the id was stored before.

        Raises as `publish`; then any part may be stored, and all may be published again with the same ids.
        """
        ...

    async def pull(self, consumer: str, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """Up to `batch` deliveries, as soon as there is one; empty after `timeout_s`.

        Raises PortUnavailable, PortMisconfigured for a consumer that is missing and was never ensured here.
        """
        ...

    async def holds(self, sequence: int) -> bool:
        """Whether the command at `sequence` is still in COMMANDS, by the leader's word."""
        ...

    async def is_taken(self, consumer: str) -> bool:
        """Whether somebody works on this consumer just now: a pull waits, or deliveries are out. Raises PortUnavailable."""
        ...


class Heartbeat(Protocol):
    """Renews the leases of deliveries that are being worked on, whatever the main loop is busy with."""

    def hold(self, ack_subject: str, until_ms: int) -> None:
        """Renews this delivery until it is dropped or `until_ms` (since the epoch, UTC) is reached."""
        ...

    def drop(self, ack_subject: str) -> None:
        """Renews it no longer; unknown ones are fine."""
        ...

    def is_broken(self, ack_subject: str) -> bool:
        """Whether this delivery may be in other hands already.

        So it is when it is not held, or when the last renewal that surely reached the server (before the first:
        its receipt) is older than the lease. Told at once, also right after a pause of the whole process.
        """
        ...


class Replies(Protocol):
    """Answers to commands; lost when nobody waits or the server is away."""

    async def answer(self, subject: str, payload: bytes) -> None: ...


class Notes(Protocol):
    """AUDITIN, TRACE and DEAD: records beside the state."""

    async def audit(self, tenant: str, record: str, payload: bytes) -> None:
        """Submits a record to the auditor; stored when it returns. `record` is its id, submitted once."""
        ...

    async def trace(self, tenant: str, kind: str, payload: bytes) -> None:
        """Best effort; never raises for a server that is away."""
        ...

    async def bury(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> None:
        """Stores a command in DEAD, under its own `subject`, with the reason in its headers; stored when it returns."""
        ...

    async def buried(self, key: RunKey) -> Sequence[Record]:
        """The commands of a run in DEAD, in order; of several on one subject the last. Raises PortUnavailable."""
        ...


class Objects(Protocol):
    """The bucket `artifacts`: payloads too large for a commit."""

    async def put(self, name: str, data: bytes) -> None: ...

    async def get(self, name: str) -> bytes:
        """Raises KeyError when there is no such object, PortUnavailable."""
        ...


class Snapshots(Protocol):
    """The bucket `snapshots`: folded runs, which may be lost at any time. Never raises for a server that is away."""

    async def put(self, key: RunKey, data: bytes) -> None:
        """Keeps bytes for a run in place of those kept before; best effort."""
        ...

    async def get(self, key: RunKey) -> bytes | None:
        """What was kept last, or None; what is torn or older is for the reader to see."""
        ...


class Clock(Protocol):
    """The time by which decisions are stamped."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...


class TimerRef(msgspec.Struct, frozen=True):
    """A timer of a run. `name` is that of its TimerArmed (`"<version>.<index>"`), never used again; `due` in ms UTC."""

    key: RunKey
    name: str
    timer_class: TimerClass
    due: int


class Fire(Protocol):
    """A timer that fired, under a lease: what is neither acknowledged nor given back comes again.

    `fired_at` is the server's clock at the fire, ms UTC.
    """

    timer: TimerRef
    fired_at: int

    async def ack(self) -> None: ...
    async def nak(self, delay_s: float = 0.0) -> None: ...


class Timers(Protocol):
    """TIMERS: what is armed fires once, after its time by the server's clock. One publisher: the scheduler."""

    async def ensure_consumers(self, *, recreate: bool = False) -> None:
        """Makes the consumers of fires that are missing; `recreate` as in CommandQueue. Raises as that does."""
        ...

    async def arm(self, timer: TimerRef, at: int | None = None) -> bool:
        """Arms a timer, for `at` (ms UTC by the server's clock) in place of its due time; False when it is armed.

        A time that is past fires at once. Raises PortUnavailable (outcome unknown: arm again), PortMisconfigured.
        """
        ...

    async def cancel(self, key: RunKey, name: str) -> None:
        """Takes a timer back, armed or fired; nothing happens when there is none. Raises as `arm`."""
        ...

    async def pull(self, timer_class: TimerClass, batch: int, timeout_s: float) -> Sequence[Fire]:
        """Up to `batch` fires of a class, as soon as there is one; empty after `timeout_s`. Raises as CommandQueue.pull."""
        ...

    async def standing(self) -> frozenset[tuple[RunKey, str]]:
        """All timers that are armed, or fired and not acknowledged. Raises PortUnavailable."""
        ...


class Notice(msgspec.Struct, frozen=True):
    """A commit of STATE, told by its headers. `stored_at` is the server's clock, ms UTC; `handle` is the port's own."""

    subject: str
    sequence: int
    headers: Mapping[str, str]
    stored_at: int
    handle: object = None


class Notices(Protocol):
    """The commits of STATE that follow-up work may hang on, through one durable consumer that sees headers only."""

    async def ensure_consumer(self, *, rewind: bool = False) -> None:
        """Makes the consumer when it is missing. `rewind`: what was told and not acknowledged is told again at once."""
        ...

    async def pull(self, batch: int, timeout_s: float) -> Sequence[Notice]:
        """Looks at up to `batch` commits, as soon as there is one; those of the wanted types, or of a child's run.

        The others are acknowledged by this. Empty after `timeout_s`, and when there were others only. Raises
        PortUnavailable, PortMisconfigured.
        """
        ...

    async def read(self, notice: Notice) -> Record | None:
        """The commit itself; None when the stream has lost it. Raises PortUnavailable."""
        ...

    async def ack(self, notices: Sequence[Notice]) -> None:
        """What hangs on these is done; a lost word means that they are told again."""
        ...
