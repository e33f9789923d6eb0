"""The adapters that a case runs on: all in memory, or a real nats-server. The clock is the case's in both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.heartbeat import MemoryHeartbeat
from waybook.adapters.memory.notes import MemoryNotes, MemoryReplies
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.engine.ports import ANY_LANE
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import walker_ports, wired
from waybook.services.walker.walker import WalkerPorts
from waybook.testing.servers import NatsUnderTest, clear_streams

START_MS = round(datetime(2037, 1, 7, 10, 0, tzinfo=UTC).timestamp() * 1000)
"""A working day at 10:00 UTC, a point of the five-minute grid. In the future, so that no real clock has passed it."""

LEASE_MS = 60_000
"""How long a delivery is leased, by the clock of the case."""

NATS_LEASE_S = 1.0
"""How long a real server leases a delivery; its clock cannot be moved, so a lapse is waited for."""


class Backend(Protocol):
    """An empty installation of one case."""

    @property
    def clock(self) -> ManualClock: ...

    @property
    def ports(self) -> WalkerPorts: ...

    @property
    def poll_s(self) -> float:
        """How often to look whether something has come to rest."""
        ...

    async def lapse(self) -> None:
        """The clock was moved beyond the leases: returns when those that nobody renews have run out."""
        ...


class MemoryBackend:
    """All ports in memory."""

    poll_s = 0.0

    def __init__(self, chance: Random | None = None, *, beside: "MemoryBackend | None" = None) -> None:
        """`beside`: one whose clock and queue of commands this one shares; all else is its own."""
        clock = beside.clock if beside is not None else ManualClock(START_MS)
        queue = MemoryCommandQueue(clock, ack_wait_s=LEASE_MS / 1000, chance=chance)
        commands = beside.commands if beside is not None else queue
        self.clock: ManualClock = clock
        self.commands: MemoryCommandQueue = commands
        self.ports = WalkerPorts(
            state=MemoryStateLog(self.clock),
            commands=commands,
            replies=MemoryReplies(),
            notes=MemoryNotes(),
            objects=MemoryObjects(),
            heartbeat=MemoryHeartbeat(commands, self.clock, lambda: None),
            clock=self.clock,
        )

    async def lapse(self) -> None:
        return


class NatsBackend:
    """The ports on a real nats-server."""

    poll_s = 0.002

    def __init__(self, ports: WalkerPorts, clock: ManualClock) -> None:
        self.ports = ports
        self.clock = clock

    async def lapse(self) -> None:
        await asyncio.sleep(NATS_LEASE_S * 1.5)


@asynccontextmanager
async def in_memory(chance: Random | None = None) -> AsyncIterator[Backend]:
    """A backend without any server. `chance` shuffles deliveries."""
    backend = MemoryBackend(chance)
    await backend.ports.commands.ensure_consumers(ANY_LANE)
    yield backend


def on_nats(server: NatsUnderTest) -> AbstractAsyncContextManager[Backend]:
    """A backend on `server`, whose streams are emptied first."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Backend]:
        await clear_streams(server.url)
        await ensure_topology(server.url, monitor_url=server.monitor_url, ack_wait_ms=round(NATS_LEASE_S * 1000))
        clock = ManualClock(START_MS)
        async with wired(server.url, name="conformance", ack_wait_s=NATS_LEASE_S) as wiring:
            async with walker_ports(
                wiring, server.url, ack_wait_s=NATS_LEASE_S, exclusive=False, on_lost=lambda: None
            ) as ports:
                yield NatsBackend(
                    WalkerPorts(
                        state=ports.state,
                        commands=ports.commands,
                        replies=ports.replies,
                        notes=ports.notes,
                        objects=ports.objects,
                        heartbeat=ports.heartbeat,
                        clock=clock,
                    ),
                    clock,
                )

    return opened()
