"""Runs one agent once: the shortest way from a class with steps to a durable run."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from waybook.adapters.embedded import NatsServer
from waybook.agents import Agent, StartEvent
from waybook.agents.definition import AgentDefinition, define
from waybook.agents.effects import EffectAdapter
from waybook.engine.hold import hold
from waybook.engine.ports import ANY_LANE, CommandQueue, lane_consumer
from waybook.engine.run import Run
from waybook.events.command import Command, StartPayload
from waybook.events.errors import RetryableError
from waybook.events.subjects import RunKey, command_subject
from waybook.events.typed import Event
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import Wiring, walker_ports, wired
from waybook.services.walker.definitions import lanes
from waybook.services.walker.walker import Walker, WalkerOptions

POLL_S = 0.02


class StillRunning(RetryableError):
    """The run neither ended nor is held within the given time; it goes on where it stands."""


class Finished(msgspec.Struct, frozen=True):
    """Where a run stands: its id, lifecycle state, hold (`none` when it has ended), and the stop event, if any."""

    run: str
    state: str
    hold: str
    result: Event | None


async def run_once(
    agent: type[Agent],
    start: StartEvent,
    *,
    nats_url: str | None = None,
    provides: Mapping[type, Any] | None = None,
    effects: Mapping[str, EffectAdapter] | None = None,
    run: str | None = None,
    timeout_s: float = 60.0,
) -> Finished:
    """Starts a run of `agent` and waits until it has ended or is held.

    `nats_url`: a nats-server to use; by default one is started in a temporary folder and goes with it. `provides`
    maps types that steps ask for to objects, `effects` names of side effects to adapters. `run`: an id of your own; one that is there already is not started
    again. Raises DefinitionError, StillRunning after `timeout_s`, and what starting a server raises.
    """
    definition = define(agent)
    async with _server(nats_url) as url:
        await ensure_topology(url)
        async with wired(url, name="run-once") as wiring:
            own = lanes([definition])
            async with walker_ports(
                wiring, url, ack_wait_s=60.0, exclusive=nats_url is None, on_lost=lambda: walker.claims_lost(),
                consumers=(*ANY_LANE, *own),
            ) as ports:  # fmt: skip
                options = WalkerOptions(pull_s=0.2, lane_consumers=tuple(spec.name for spec in own))
                walker = Walker([definition], ports, provides=provides, effects=effects, options=options)
                work = asyncio.create_task(walker.run())
                try:
                    key = RunKey("main", definition.engine.agent, run or uuid4().hex[:26])
                    await _publish(wiring, definition, key, start)
                    return await asyncio.wait_for(_settled(walker, wiring.commands, definition, key), timeout_s)
                except TimeoutError as error:
                    raise StillRunning(f"run {key} is not done after {timeout_s:g} s") from error
                finally:
                    await walker.stop()
                    await work


@asynccontextmanager
async def _server(nats_url: str | None) -> AsyncIterator[str]:
    if nats_url is not None:
        yield nats_url
        return
    folder = Path(tempfile.mkdtemp(prefix="waybook-"))
    server = NatsServer(folder / "nats")
    try:
        await server.start()
        yield server.url
    finally:
        await server.stop()
        await asyncio.to_thread(shutil.rmtree, folder)


async def _publish(wiring: Wiring, definition: AgentDefinition, key: RunKey, start: StartEvent) -> None:
    output = definition.output(start)
    payload = StartPayload(event=output.event, schema=output.schema, body=output.payload)
    command = Command(
        id=uuid4().hex,
        verb="start",
        issued_at=wiring.clock.now(),
        actor="run-once",
        payload=msgspec.Raw(msgspec.json.encode(payload)),
    )
    subject = command_subject(key, "start", issuer="cli")
    await wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)


async def _settled(walker: Walker, commands: CommandQueue, definition: AgentDefinition, key: RunKey) -> Finished:
    run: Run | None = None
    while True:
        run = await walker.lifecycle.load(key, run)
        if run is not None:
            own = definition.engine.carries(run.definition)
            elsewhere = not own and await commands.is_taken(lane_consumer(run.definition).name)
            held = hold(definition.engine, run, elsewhere=elsewhere)
            if run.ended or held.kind != "none":
                return Finished(key.run, run.state, held.kind, _result(definition, run))
        await asyncio.sleep(POLL_S)


def _result(definition: AgentDefinition, run: Run) -> Event | None:
    stops = [p for p in run.log if definition.engine.kinds.get(p.event) == "stop"]
    if not stops:
        return None
    return definition.decode(stops[-1].event, stops[-1].schema, stops[-1].payload)
