"""The nats-server killed and restarted under load: no acknowledged commit lost, none doubled."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest
from tests.contract.ports.adapters_under_test import STREAM, draft, installed

from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.engine.ports import NEW_ANY, Outgoing, PortUnavailable
from waybook.testing.servers import NatsUnderTest

T = TypeVar("T")
RUNS = 40
KILLS = 3


@pytest.fixture
async def connection(own_nats: NatsUnderTest) -> AsyncIterator[Connection]:
    """A connection to a server of this test's own."""
    async with installed(own_nats.url, request_timeout_s=2.0) as opened:
        yield opened


async def until_more(acknowledged: dict[str, list[tuple[int, str]]], count: int) -> None:
    """Waits until `count` more commits are acknowledged."""
    before = sum(map(len, acknowledged.values()))
    async with asyncio.timeout(20):
        while sum(map(len, acknowledged.values())) < before + count:  # noqa: ASYNC110 - a test looks on
            await asyncio.sleep(0.01)


async def test_writers_carry_on_over_kills_of_the_server_and_every_commit_is_there_once(
    own_nats: NatsUnderTest, connection: Connection
) -> None:
    log = NatsStateLog(connection, STREAM)
    acknowledged: dict[str, list[tuple[int, str]]] = {f"r{i}": [] for i in range(RUNS)}
    stopping = asyncio.Event()

    async def walk(run: str) -> None:
        expected = 0
        while not stopping.is_set():
            commit = draft(run, expected, str(len(acknowledged[run])), size=300)
            expected = await log.append(commit)
            acknowledged[run].append((expected, commit.commit))

    walks = [asyncio.create_task(walk(run)) for run in acknowledged]
    for _ in range(KILLS):
        await until_more(acknowledged, 10 * RUNS)
        await own_nats.kill()
        await own_nats.restart()
    await until_more(acknowledged, RUNS)
    stopping.set()
    await asyncio.wait_for(asyncio.gather(*walks), 20)

    for run, commits in acknowledged.items():
        stored = [(r.sequence, r.headers["Waybook-Commit"]) async for r in log.history(draft(run, 0).subject)]
        assert stored == commits
    everything = sorted(sequence for commits in acknowledged.values() for sequence, _ in commits)
    assert everything == list(range(1, len(everything) + 1))


async def test_every_command_is_delivered_and_acknowledged_over_kills_of_the_server(
    own_nats: NatsUnderTest, connection: Connection
) -> None:
    queue = NatsCommandQueue(connection, ack_wait_s=1.0)
    await queue.ensure_consumers((NEW_ANY,))
    done: set[str] = set()
    wanted = {f"c{i}" for i in range(300)}

    async def produce() -> None:
        for i in range(0, 300, 20):
            part = [Outgoing(f"cmd.new.any.cli.test.inbox.r{n}.start", b"{}", f"c{n}") for n in range(i, i + 20)]
            await again(partial(queue.publish_many, part))
            await asyncio.sleep(0.02)

    async def consume() -> None:
        while done != wanted:
            for delivery in await again(lambda: queue.pull("new_any", 10, 2.0)):
                done.add(delivery.headers["Nats-Msg-Id"])
                await delivery.ack()

    async with asyncio.timeout(40):
        consuming = asyncio.create_task(consume())
        producing = asyncio.create_task(produce())
        for _ in range(KILLS):
            await asyncio.sleep(0.1)
            await own_nats.kill()
            await own_nats.restart()
        await producing
        await consuming
    assert done == wanted


async def again(operation: Callable[[], Awaitable[Sequence[T]]]) -> Sequence[T]:
    """Repeats an operation until the server answers."""
    while True:
        try:
            return await operation()
        except PortUnavailable:
            await asyncio.sleep(0.05)
