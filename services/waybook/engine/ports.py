"""What the engine's shell needs from outside, one Protocol a need.

Every adapter passes the same contract tests (`tests/contract`). Errors of a port are `PortError`s: they say
nothing about a step and are never stored as its failure.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import msgspec

from waybook.events.engine import Claim
from waybook.events.errors import RetryableError, TerminalError


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
    """A commit is over 256 KiB; the message names the field that fills it."""


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

    async def append(self, draft: Draft, *, tries: int | None = None) -> int:
        """Stores a commit and returns its sequence in the stream.

        An unknown outcome is settled by asking the leader for the successor of `draft.expected` and sending
        the same bytes again, without bound when `tries` is None. Raises AppendConflict when another commit
        stands in its place, OutcomeUnknown after `tries`, StreamFull, PortMisconfigured, CommitTooLarge.
        """
        ...

    def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        """The subject's commits with a sequence above `after`, in order, read page by page.

        It may lag behind the leader on a replicated stream. Raises PortUnavailable.
        """
        ...

    async def tail(self, subject: str) -> Record | None:
        """The subject's last commit by the leader's word, or None. Raises PortUnavailable."""
        ...


class Delivery(Protocol):
    """One delivery of a command; `claim` orders the deliveries of one command.

    None of the verbs may be used by a superseded holder: JetStream honours them from old deliveries (R1.1).
    """

    subject: str
    payload: bytes
    headers: Mapping[str, str]
    claim: Claim
    received_at: int  # when COMMANDS stored it, milliseconds since the epoch, UTC

    async def ack(self) -> None: ...
    async def nak(self, delay_s: float = 0.0) -> None: ...
    async def term(self, reason: str) -> None: ...
    async def in_progress(self) -> None: ...


class CommandQueue(Protocol):
    """COMMANDS: publishing requests and taking them under a lease."""

    async def publish(
        self, subject: str, payload: bytes, *, command: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        """Stores a command; False when its id was stored before within the duplicate window.

        Raises StreamFull, PortUnavailable (outcome unknown: publish again with the same id), PortMisconfigured.
        """
        ...

    async def pull(self, consumer: str, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """Up to `batch` deliveries, as soon as there is one; empty after `timeout_s`. Raises PortUnavailable."""
        ...

    async def holds(self, sequence: int) -> bool:
        """Whether the command at `sequence` is still in COMMANDS, by the leader's word."""
        ...


class Replies(Protocol):
    """Answers to commands; lost when nobody waits."""

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
        """Stores a command in DEAD with the reason in its headers; stored when it returns."""
        ...


class Objects(Protocol):
    """The bucket `artifacts`: payloads too large for a commit."""

    async def put(self, name: str, data: bytes) -> None: ...

    async def get(self, name: str) -> bytes:
        """Raises KeyError when there is no such object, PortUnavailable."""
        ...


class Clock(Protocol):
    """The time by which decisions are stamped."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...


class Leases(Protocol):
    """Keeps held deliveries from being redelivered while work goes on, from a place that runs no user code."""

    def hold(self, delivery: Delivery, until: int | None = None) -> None:
        """Sends heartbeats for `delivery` until it is dropped, or until `until` (ms UTC) has passed."""
        ...

    def drop(self, delivery: Delivery) -> None:
        """Stops the heartbeats; the delivery may have been dropped before."""
        ...
