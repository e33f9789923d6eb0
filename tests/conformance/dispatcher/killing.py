"""Dispatcher cases that arm a crash, with processes that really die of SIGKILL, on a real nats-server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NamedTuple

import nats.errors
from nats.js.errors import NotFoundError
from tests.conformance.cases import Case
from tests.conformance.dispatcher.deadly import Deadly, counted, work
from tests.conformance.dispatcher.expect import check
from tests.conformance.dispatcher.publish import perform
from tests.conformance.dispatcher.world import World
from tests.conformance.errors import Mismatch, Unsupported
from tests.conformance.pipeline.backends import START_MS, NatsBackend
from tests.crash import forking
from tests.crash.walks import count, until, until_async
from tests.crash.worker import consumers

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.heartbeat import MemoryHeartbeat
from waybook.adapters.nats.command_queue import STREAM
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.wiring import Wiring
from waybook.services.walker.walker import WalkerPorts

ACK_WAIT_S = 1.0
AT_ONCE = 10
WITHIN_S = 60.0
"""How long what a pass waits for may take; on a crowded machine ten processes at once need their time."""

KILLED = -9


class Pass(NamedTuple):
    """One pass through a case."""

    case: Case
    walkers: int
    seed: int

    def __str__(self) -> str:
        return f"{self.case.id} with {self.walkers} walkers, seed {self.seed}, SIGKILL"


async def kill_all(
    wiring: Wiring, url: str, folder: Path, passes: Sequence[Pass], tell: Callable[[int], None]
) -> list[str]:
    """Carries out all of them, several at a time, each in a tenant of its own. What differed."""
    await asyncio.to_thread(forking.ready)
    turn = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def one(number: int, tried: Pass) -> list[str]:
        nonlocal done
        async with turn:
            try:
                await _carry_out(wiring, url, folder / f"journal-{number}", f"k{number}", tried)
                return []
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a difference, and the others go on
                return [f"{tried}: {type(error).__name__}: {error}"]
            finally:
                done += 1
                tell(done)

    found = await asyncio.gather(*(one(number, tried) for number, tried in enumerate(passes)))
    return [text for texts in found for text in texts]


async def _killed(process: ForkServerProcess, tenant: str) -> None:
    await until(lambda: process.exitcode is not None, f"{tenant}: the first process dies", WITHIN_S)
    if process.exitcode != KILLED:
        raise Mismatch([("crash", f"the process ended with {process.exitcode}")])


async def _carry_out(wiring: Wiring, url: str, journal: Path, tenant: str, tried: Pass) -> None:
    """One process dies at the crash point, a second one with an empty memory goes on. Raises Mismatch."""
    case, clock = tried.case, ManualClock(START_MS)
    queue = MemoryCommandQueue(clock)
    ports = WalkerPorts(
        state=wiring.state, commands=wiring.commands, replies=wiring.replies, notes=wiring.notes,
        objects=wiring.objects, heartbeat=MemoryHeartbeat(queue, clock, lambda: None), clock=clock,
    )  # fmt: skip
    world = World(case, NatsBackend(ports, clock), tenant=tenant)
    world.define()
    async with _consumers(wiring, tenant):
        await _play(world, wiring, url, journal, tenant, tried)
    for (run, step), times in counted(journal).items():
        world.bodies.runs[RunKey(tenant, world.key.agent, run), step] = times
    problems = await check(world, case.expect, world.run)
    if problems:
        raise Mismatch(problems)


async def _play(world: World, wiring: Wiring, url: str, journal: Path, tenant: str, tried: Pass) -> None:
    """Publishes what the case does, until all commands are acknowledged; no process is left then."""
    case = tried.case
    crash = next(item["crash"] for item in case.publish if "crash" in item)
    mortal = Deadly(url, tenant, case, journal, tried.walkers, tried.seed, ACK_WAIT_S, crash)
    process = forking.begin(work, mortal)
    try:
        for item in case.publish:
            if "event" in item:
                await perform(world, item)
            elif "restart" in item:
                await _killed(process, tenant)
                healthy = Deadly(url, tenant, case, journal, tried.walkers, tried.seed, ACK_WAIT_S, None)
                process = forking.begin(work, healthy)
            elif "crash" not in item:
                raise Unsupported(f"`publish` beside a SIGKILL: {sorted(item)}")

        async def settled() -> bool:
            return process.exitcode is None and await count(wiring.connection, STREAM, f"cmd.*.*.*.{tenant}.>") == 0

        await until_async(settled, f"{tenant}: all commands are acknowledged", WITHIN_S)
    finally:
        process.kill()
        await asyncio.to_thread(process.join, 10)


@asynccontextmanager
async def _consumers(wiring: Wiring, tenant: str) -> AsyncIterator[None]:
    """Those of a tenant's commands, for the time of the block: a server takes only so many consumers."""
    specs = consumers(tenant)
    await wiring.commands.ensure_consumers(specs)
    try:
        yield
    finally:
        for spec in specs:
            await until_async(partial(_deleted, wiring, spec.name), f"{spec.name} is deleted", WITHIN_S)


async def _deleted(wiring: Wiring, name: str) -> bool:
    try:
        return await wiring.connection.client.jetstream().delete_consumer(STREAM, name)
    except nats.errors.TimeoutError:  # a busy server is asked again
        return False
    except NotFoundError:  # the answer to an earlier time of asking was lost
        return True
