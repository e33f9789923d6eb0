"""The adapters under test, each behind the same small set-up, and commits for them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.notes import MemoryNotes, MemoryReplies
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.snapshots import MemorySnapshots
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.notes import NatsNotes, NatsReplies
from waybook.adapters.nats.objects import NatsObjects
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.snapshots import NatsSnapshots
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.adapters.nats.topology import apply, load_topology
from waybook.engine.ports import CommandQueue, Draft, Notes, Objects, Replies, Snapshots, StateLog
from waybook.events.headers import COMMIT
from waybook.events.subjects import digest_token

ACK_WAIT_S = 1.0
STREAM = "STATE_g1_00"


class Ports:
    """All ports of one adapter. `lapse` lets the leases that run now end, unless they are renewed."""

    def __init__(
        self, log: StateLog, queue: CommandQueue, notes: Notes, objects: Objects, replies: Replies,
        snapshots: Snapshots, lapse: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        self.log = log
        self.queue = queue
        self.notes = notes
        self.objects = objects
        self.replies = replies
        self.snapshots = snapshots
        self.lapse = lapse


@asynccontextmanager
async def installed(url: str, **settings: object) -> AsyncIterator[Connection]:
    """A connection to a server that has the streams of an installation."""
    async with await Connection.open(NatsSettings(servers=(url,), **settings)) as connection:  # type: ignore[arg-type]
        await apply(connection.client, load_topology())
        yield connection


def memory_ports() -> Ports:
    """The ports in memory."""
    clock = ManualClock()

    async def lapse() -> None:
        clock.advance(int(ACK_WAIT_S * 1000) + 1)

    return Ports(
        MemoryStateLog(clock), MemoryCommandQueue(clock, ack_wait_s=ACK_WAIT_S), MemoryNotes(), MemoryObjects(),
        MemoryReplies(), MemorySnapshots(), lapse,
    )  # fmt: skip


def nats_ports(connection: Connection) -> Ports:
    """The ports on NATS."""

    async def lapse() -> None:
        await asyncio.sleep(ACK_WAIT_S)  # the server's clock cannot be moved

    return Ports(
        NatsStateLog(connection, STREAM), NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S), NatsNotes(connection),
        NatsObjects(connection), NatsReplies(connection), NatsSnapshots(connection), lapse,
    )  # fmt: skip


def draft(run: str, expected: int, text: str = "x", *, size: int = 0) -> Draft:
    """A commit of a run; equal arguments make equal commits."""
    subject = f"state.g1.00.test.inbox.{run}"
    payload = b'{"events":[{"text":"%b"}]}' % (text.encode() + b"y" * size)
    commit = digest_token(subject, str(expected), payload)
    return Draft(subject, expected, payload, {COMMIT: commit, "Waybook-Types": "Test"}, commit)
