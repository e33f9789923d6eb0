"""Writers that share runs over wires that are cut, deaf and mute: what each of them was told is what is stored."""

import asyncio
import contextlib
import random
from contextlib import AsyncExitStack

from tests.contract.ports.adapters_under_test import STREAM, draft, installed
from tests.contract.ports.proxy import Proxy

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.engine.ports import AppendConflict, OutcomeUnknown, PortUnavailable
from waybook.testing.servers import NatsUnderTest

RUNS = 24
PROCESSES = 3
COMMITS = 12  # of each process on each run
SEED = 20


class Told:
    """What the writers were told of each commit id."""

    def __init__(self) -> None:
        self.stored: dict[str, int] = {}
        self.conflicts: set[str] = set()


async def last(log: NatsStateLog, run: str) -> int:
    """The sequence to append behind, from a server that may be away for a while."""
    while True:
        with contextlib.suppress(PortUnavailable):
            tail = await log.tail(draft(run, 0).subject)
            return tail.sequence if tail else 0
        await asyncio.sleep(0.02)


async def write(log: NatsStateLog, run: str, name: str, told: Told) -> None:
    """Appends behind the tail, conflicts with the others at will."""
    for i in range(COMMITS):
        commit = draft(run, await last(log, run), f"{name}.{i}")
        try:
            told.stored[commit.commit] = await log.append(commit, tries=50 if i % 5 == 0 else None)
        except AppendConflict:
            told.conflicts.add(commit.commit)
        except OutcomeUnknown:
            continue


async def disturb(proxies: list[Proxy], chance: random.Random) -> None:
    """Harm to the wires, one after the other, for ever."""
    while True:
        await asyncio.sleep(chance.uniform(0.0, 0.1))
        proxy = chance.choice(proxies)
        proxy.deaf, proxy.mute = chance.choice([(True, False), (False, True), (False, False)])
        await asyncio.sleep(chance.uniform(0.0, 0.4))
        proxy.deaf = proxy.mute = False
        proxy.cut()


async def test_what_a_writer_is_told_is_what_is_stored(clean_nats: NatsUnderTest) -> None:
    told = Told()
    async with AsyncExitStack() as stack:
        direct = NatsStateLog(await stack.enter_async_context(installed(clean_nats.url)), STREAM)
        proxies = [await stack.enter_async_context(Proxy(clean_nats.url)) for _ in range(PROCESSES)]
        logs = []
        for proxy in proxies:
            settings = NatsSettings(servers=(proxy.url,), request_timeout_s=0.3, connect_timeout_s=0.3)
            logs.append(NatsStateLog(await stack.enter_async_context(await Connection.open(settings)), STREAM))
        disturbing = asyncio.create_task(disturb(proxies, random.Random(SEED)))
        writing = [write(log, f"r{r}", f"p{p}", told) for p, log in enumerate(logs) for r in range(RUNS)]
        await asyncio.wait_for(asyncio.gather(*writing), 60)
        disturbing.cancel()

        stored: dict[str, int] = {}
        for r in range(RUNS):
            previous = 0
            async for record in direct.history(draft(f"r{r}", 0).subject):
                assert record.headers["Nats-Expected-Last-Subject-Sequence"] == str(previous)
                assert record.headers["Waybook-Commit"] not in stored
                previous = stored[record.headers["Waybook-Commit"]] = record.sequence
        assert sorted(stored.values()) == list(range(1, len(stored) + 1))
        assert told.stored.items() <= stored.items()
        assert not told.conflicts & stored.keys()
        assert len(told.conflicts) > 0
