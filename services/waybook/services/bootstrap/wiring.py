"""The ports of one process, on one connection to NATS."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.group_commit import GroupSettings
from waybook.adapters.nats.heartbeat import NatsHeartbeat
from waybook.adapters.nats.notes import NatsNotes, NatsReplies
from waybook.adapters.nats.objects import NatsObjects
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.snapshots import NatsSnapshots
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.engine.hooks import Hook, ignore
from waybook.engine.ports import ANY_LANE, ConsumerSpec
from waybook.events.subjects import state_stream
from waybook.services.bootstrap.clock import SystemClock
from waybook.services.walker.walker import WalkerPorts


class Wiring(msgspec.Struct, frozen=True):
    """The ports that every role uses; `hook` is told what happens in them."""

    connection: Connection
    state: NatsStateLog
    commands: NatsCommandQueue
    notes: NatsNotes
    replies: NatsReplies
    objects: NatsObjects
    snapshots: NatsSnapshots
    clock: SystemClock
    hook: Hook = ignore


def nats_settings(nats_url: str, name: str, inbox_prefix: str = "_INBOX") -> NatsSettings:
    """How to reach the server or cluster of `nats_url` (comma separated)."""
    servers = tuple(part.strip() for part in nats_url.split(","))
    return NatsSettings(servers=servers, name=name, inbox_prefix=inbox_prefix)


@asynccontextmanager
async def wired(
    nats_url: str,
    *,
    name: str,
    ack_wait_s: float = 60.0,
    group: GroupSettings | None = None,
    inbox_prefix: str = "_INBOX",
    hook: Hook = ignore,
) -> AsyncIterator[Wiring]:
    """The ports on a connection that lives as long as the block. Raises PortUnavailable, PortMisconfigured."""
    async with await Connection.open(nats_settings(nats_url, name, inbox_prefix)) as connection:
        wiring = Wiring(
            connection=connection,
            state=NatsStateLog(connection, state_stream(), group, hook),
            commands=NatsCommandQueue(connection, ack_wait_s=ack_wait_s),
            notes=NatsNotes(connection),
            replies=NatsReplies(connection),
            objects=NatsObjects(connection),
            snapshots=NatsSnapshots(connection),
            clock=SystemClock(),
            hook=hook,
        )
        try:
            yield wiring
        finally:
            await wiring.commands.give_back()


@asynccontextmanager
async def walker_ports(
    wiring: Wiring,
    nats_url: str,
    *,
    ack_wait_s: float,
    exclusive: bool,
    on_lost: Callable[[], None],
    consumers: Sequence[ConsumerSpec] = ANY_LANE,
) -> AsyncIterator[WalkerPorts]:
    """What a walker needs: consumers that are there, and a heartbeat in a thread of its own.

    `exclusive`: this process owns the data directory alone, so what a killed predecessor held comes back at once
    (claims, rule 10). `on_lost` is called on this loop when all claims are lost. `consumers` are made when missing.
    """
    loop = asyncio.get_running_loop()

    def lost() -> None:
        loop.call_soon_threadsafe(on_lost)

    await wiring.commands.ensure_consumers(consumers, recreate=exclusive)
    inbox_prefix = wiring.connection.settings.inbox_prefix
    heartbeat = NatsHeartbeat(nats_settings(nats_url, "waybook-heartbeat", inbox_prefix), ack_wait_s, lost)
    await asyncio.to_thread(heartbeat.start)
    try:
        yield WalkerPorts(
            state=wiring.state,
            commands=wiring.commands,
            replies=wiring.replies,
            notes=wiring.notes,
            objects=wiring.objects,
            heartbeat=heartbeat,
            clock=wiring.clock,
            snapshots=wiring.snapshots,
        )
    finally:
        await asyncio.to_thread(heartbeat.stop)
