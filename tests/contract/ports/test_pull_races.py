"""CommandQueue.pull against its own end: what comes in the moment in which a pull runs out, fails or is cancelled."""

import asyncio
from collections import Counter
from random import Random

import pytest

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.engine.ports import NEW_ANY, CommandQueue, Delivery, PortUnavailable

START = "cmd.new.any.cli.test.inbox.r{}.start"
COMMANDS = 200
PULLERS = 6
WITHIN_S = 20.0
LONG_LEASE_S = 120.0
"""Nothing lapses in a test: what gets lost never comes."""


@pytest.fixture(params=["memory", "nats"])
def patient(request: pytest.FixtureRequest) -> CommandQueue:
    """Every adapter in turn, with leases that outlast the test."""
    if request.param == "memory":
        return MemoryCommandQueue(ManualClock(), ack_wait_s=LONG_LEASE_S, chance=Random(1))
    connection: Connection = request.getfixturevalue("connection")
    return NatsCommandQueue(connection, ack_wait_s=LONG_LEASE_S)


async def test_nothing_is_lost_between_pulls_that_run_out_and_are_cancelled(patient: CommandQueue) -> None:
    """Commands and redeliveries that come while pulls of 1 to 12 ms run out or are cancelled are delivered, once each."""
    await patient.ensure_consumers((NEW_ANY,))
    chance, seen = Random(2), Counter[int]()
    async with asyncio.timeout(WITHIN_S):
        publishing = asyncio.create_task(_publish(patient, chance))
        await asyncio.gather(*(_take(patient, seen, chance) for _ in range(PULLERS)))
        await publishing
    assert seen == {sequence: 2 if _comes_twice(sequence) else 1 for sequence in range(1, COMMANDS + 1)}


async def _publish(queue: CommandQueue, chance: Random) -> None:
    for number in range(COMMANDS):
        await queue.publish(START.format(number), b"{}", command=f"race-{number}")
        await asyncio.sleep(chance.random() * 0.006)


async def _take(queue: CommandQueue, seen: Counter[int], chance: Random) -> None:
    while len(seen) < COMMANDS or any(seen[n] < 2 for n in seen if _comes_twice(n)):
        pull = asyncio.create_task(_pull(queue, chance.random() * 0.011 + 0.001))
        if chance.random() < 0.5:
            await asyncio.sleep(chance.random() * 0.008)
            pull.cancel()
        await asyncio.wait([pull])
        for delivery in () if pull.cancelled() else pull.result():
            sequence = delivery.claim.sequence
            seen[sequence] += 1
            assert delivery.claim.delivery == seen[sequence], "a delivery in between got lost"
            await (delivery.nak() if _comes_twice(sequence) and seen[sequence] == 1 else delivery.ack())


async def _pull(queue: CommandQueue, timeout_s: float) -> list[Delivery]:
    try:
        return list(await queue.pull("new_any", 3, timeout_s))
    except PortUnavailable:  # the server took its time to answer; what it sends later is for the next pull
        return []


def _comes_twice(sequence: int) -> bool:
    return sequence % 3 == 0
