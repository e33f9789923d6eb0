"""Waybook's figure: messages through five no-op steps, walker and projector in two processes (DESIGN 12)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from bench.noop import NoopInbox, mail
from waybook.adapters.nats.outcome import LeaderReads
from waybook.agents.definition import define
from waybook.engine.hooks import Hook, ignore
from waybook.engine.ports import Outgoing
from waybook.events.command import Command, StartPayload
from waybook.events.subjects import RunKey, command_subject
from waybook.projections.read_models import ReadModels
from waybook.services.bootstrap.wiring import Wiring, walker_ports, wired
from waybook.services.reading.models import last_position
from waybook.services.walker.walker import Walker, WalkerOptions

PARKED_STATE = "draft_ready"
LAST_VERSION = 6


class WalkResult(msgspec.Struct, frozen=True):
    """One round. `lag_s`: from the last commit until the read models had it."""

    messages_s: float
    lag_s: float


class Field:
    """A walker at work, with what a round needs."""

    def __init__(self, wiring: Wiring, models: ReadModels) -> None:
        self.wiring = wiring
        self.models = models
        self._round = 0

    def start(self, tenant: str, number: int) -> Outgoing:
        """The start of one message."""
        key = RunKey(tenant, "inbox", f"m{number}")
        payload = StartPayload(
            event="MailReceived",
            body=msgspec.Raw(msgspec.json.encode(mail(number))),
            content=f"c{number}",
            thread=f"m{number}",  # the first of its thread
            mailbox="inbox",
            id=f"{number}@x.example",
        )
        command = Command(
            id=f"{tenant}-{number}",
            verb="start",
            issued_at=self.wiring.clock.now(),
            actor="bench",
            payload=msgspec.Raw(msgspec.json.encode(payload)),
        )
        return Outgoing(command_subject(key, "start", issuer="cli"), msgspec.json.encode(command), command.id)

    async def round(self, messages: int) -> WalkResult:
        """The clock runs from the first start's publish to the last commit, intake included."""
        self._round += 1
        tenant = f"b{self._round}"
        before = (await last_position(self.wiring)).sequence
        starts = [self.start(tenant, n) for n in range(messages)]
        began = time.perf_counter()
        publishing = asyncio.create_task(self.wiring.commands.publish_many(starts))
        end = before + messages * LAST_VERSION
        while (await last_position(self.wiring)).sequence < end:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.02)
        took = time.perf_counter() - began
        await publishing
        await self.models.wait_until(await last_position(self.wiring), 60.0, poll_s=0.005)
        lag = time.perf_counter() - began - took
        counts = await self.models.counts(tenant=tenant)
        assert counts == {PARKED_STATE: messages}, counts
        return WalkResult(messages / took, lag)

    async def single_ms(self, samples: int) -> list[float]:
        """One message alone: ms from its start's publish to its last commit."""
        self._round += 1
        tenant = f"s{self._round}"
        reads = LeaderReads(self.wiring.connection, self.wiring.state.stream)
        took = []
        for number in range(samples):
            start = self.start(tenant, number)
            before = (await last_position(self.wiring)).sequence
            subject = f"state.g1.00.{tenant}.inbox.m{number}"
            began = time.perf_counter()
            await self.wiring.commands.publish(start.subject, start.payload, command=start.command)
            last = await reads.at(before + LAST_VERSION)
            while last is None:
                await asyncio.sleep(0.0002)
                last = await reads.at(before + LAST_VERSION)
            took.append((time.perf_counter() - began) * 1000)
            assert last.subject == subject, last.subject
        return took


@asynccontextmanager
async def field(nats_url: str, database_url: str, *, slots: int, hook: Hook = ignore) -> AsyncIterator[Field]:
    """A walker in this process for the time of the block."""
    async with wired(nats_url, name="bench", hook=hook) as wiring:
        async with walker_ports(wiring, nats_url, ack_wait_s=60.0, exclusive=True, on_lost=lambda: None) as ports:
            options = WalkerOptions(slots=slots, strict=True)
            walker = Walker([define(NoopInbox)], ports, options=options, hook=hook)
            work = asyncio.create_task(walker.run())
            try:
                async with ReadModels.open(database_url) as models:
                    yield Field(wiring, models)
            finally:
                await walker.stop()
                await work
