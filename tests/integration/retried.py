"""The flaky agent on a real server, with a walker and a scheduler."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from tests.unit.scheduler.flaky import Flaky, Side

from waybook.adapters.embedded import Addresses
from waybook.agents.definition import AgentDefinition, define
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Command, StartPayload
from waybook.events.subjects import RunKey, command_subject
from waybook.services.bootstrap.installation import Installation, walking
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import wired
from waybook.services.scheduler.scheduler import Scheduler
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.walker import Walker
from waybook.testing.servers import NatsUnderTest

ACK_WAIT_S = 2.0
GRID_S = 1.0
SOON_S = 30.0


FLAKY = define(Flaky).with_retry_grid(round(GRID_S * 1000))
PATIENT = define(Flaky)  # on the grid of five minutes


@asynccontextmanager
async def installed(nats: NatsUnderTest, database_url: str | None = None) -> AsyncIterator[Installation]:
    """The streams on a server, and ports."""
    settings = Settings(nats_url=nats.url, database_url=database_url, ack_wait_s=ACK_WAIT_S, retry_grid_s=GRID_S)
    await ensure_topology(nats.url, ack_wait_ms=round(ACK_WAIT_S * 1000))
    async with wired(nats.url, name="retried", ack_wait_s=ACK_WAIT_S) as wiring:
        yield Installation(settings, Addresses(nats.url, nats.monitor_url, database_url), wiring, False)


@asynccontextmanager
async def walked(installation: Installation, side: Side, definition: AgentDefinition = FLAKY) -> AsyncIterator[Walker]:
    async with walking(installation, [definition], {Side: side}) as walker:
        yield walker


@asynccontextmanager
async def scheduled(installation: Installation) -> AsyncIterator[Scheduler]:
    async with scheduling(installation, [FLAKY]) as scheduler:
        yield scheduler


async def start(installation: Installation, *runs: str) -> list[RunKey]:
    """Starts of runs with these ids."""
    keys = [RunKey("main", "flaky", run) for run in runs]
    for key in keys:
        await give(installation, key, "start", StartPayload(event="Go", body=msgspec.Raw(b"{}")))
    return keys


async def give(installation: Installation, key: RunKey, verb: str, payload: object = None) -> None:
    """A command of a person, without waiting for the answer."""
    now = installation.wiring.clock.now()
    raw = msgspec.Raw(msgspec.json.encode(payload))
    command = Command(id=f"{key.run}-{verb}-{now}", verb=verb, issued_at=now, actor="test", payload=raw)
    subject = command_subject(key, verb, issuer="cli")
    await installation.wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)


async def loaded(installation: Installation, key: RunKey) -> Run | None:
    """The run as STATE has it."""
    wiring = installation.wiring
    return await Lifecycle(wiring.state, Codec(), wiring.clock, "test").load(key)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Returns as soon as the condition holds."""
    async with asyncio.timeout(SOON_S):
        while not await condition():  # noqa: ASYNC110  what is waited for has no event of its own
            await asyncio.sleep(0.02)


async def until_state(installation: Installation, key: RunKey, state: str) -> Run:
    """The run as soon as it stands there."""

    async def stands() -> bool:
        run = await loaded(installation, key)
        return run is not None and run.state == state

    await until(stands)
    run = await loaded(installation, key)
    assert run is not None
    return run
