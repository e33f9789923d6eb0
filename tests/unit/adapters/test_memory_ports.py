"""The ports in memory: what a test can order, besides the contract that all adapters keep."""

import asyncio

import pytest

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue, matches
from waybook.adapters.memory.faults import Faults
from waybook.adapters.memory.heartbeat import MemoryHeartbeat
from waybook.adapters.memory.notes import MemoryNotes
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.adapters.memory.timers import MemoryTimers
from waybook.engine.ports import CTL_ANY, NEW_ANY, Draft, OutcomeUnknown, PortUnavailable, StreamFull
from waybook.events.headers import COMMIT

START = "cmd.new.any.cli.t.inbox.r1.start"


def draft(expected: int, commit: str) -> Draft:
    return Draft("state.g1.00.t.inbox.r1", expected, b"{}", {COMMIT: commit}, commit)


async def test_a_lost_answer_is_settled_without_a_second_commit() -> None:
    log = MemoryStateLog()
    log.faults.lose_answers(1)
    assert await log.append(draft(0, "c1")) == 1
    assert len(log.records) == 1


async def test_facts_wait_for_a_server_that_is_away_and_bounded_appends_do_not() -> None:
    log = MemoryStateLog()
    log.faults.away()
    waiting = asyncio.create_task(log.append(draft(0, "c1")))
    with pytest.raises(OutcomeUnknown):
        await log.append(draft(0, "c2"), tries=3)
    assert not waiting.done()
    log.faults.back()
    assert await waiting == 1


async def test_every_port_fails_as_ordered() -> None:
    faults = Faults()
    log, queue = MemoryStateLog(faults=faults), MemoryCommandQueue(faults=faults)
    faults.fail(StreamFull(), StreamFull())
    with pytest.raises(StreamFull):
        await log.append(draft(0, "c1"))
    with pytest.raises(StreamFull):
        await queue.publish(START, b"{}", command="c1")
    faults.away()
    for operation in (
        log.tail("s"),
        queue.holds(1),
        MemoryNotes(faults=faults).audit("t", "r", b""),
        MemoryObjects(faults=faults).get("name"),
    ):
        with pytest.raises(PortUnavailable):
            await operation


async def test_streams_in_memory_have_limits_when_they_are_given() -> None:
    with pytest.raises(StreamFull):
        await MemoryStateLog(most=0).append(draft(0, "c1"))
    with pytest.raises(StreamFull):
        await MemoryCommandQueue(most=0).publish(START, b"{}", command="c1")


async def test_a_waiting_pull_is_woken_when_the_clock_moves_past_a_lease() -> None:
    clock = ManualClock()
    queue = MemoryCommandQueue(clock, ack_wait_s=60)
    await queue.ensure_consumers((NEW_ANY,))
    await queue.publish(START, b"{}", command="c1")
    [first] = await queue.pull("new_any", 1, 1.0)
    pulling = asyncio.create_task(_next(queue))
    await asyncio.sleep(0)
    clock.advance(60_001)
    assert await pulling == (1, first.claim.consumer_created, 2)


async def _next(queue: MemoryCommandQueue) -> tuple[int, int, int]:
    [delivery] = await queue.pull("new_any", 1, 10.0)
    return (delivery.claim.sequence, delivery.claim.consumer_created, delivery.claim.delivery)


async def test_a_held_lease_is_renewed_with_the_clock_until_it_is_dropped_or_lost() -> None:
    clock = ManualClock()
    lost: list[bool] = []
    queue = MemoryCommandQueue(clock, ack_wait_s=60)
    heartbeat = MemoryHeartbeat(queue, clock, lambda: lost.append(True))
    await queue.ensure_consumers((NEW_ANY,))
    await queue.publish(START, b"{}", command="c1")
    [delivery] = await queue.pull("new_any", 1, 1.0)
    heartbeat.hold(delivery.ack_subject, clock.now() + 600_000)
    for _ in range(4):
        clock.advance(50_000)
        assert await queue.pull("new_any", 1, 0) == []
    heartbeat.lose()
    clock.advance(60_001)
    assert lost == [True]
    assert len(await queue.pull("new_any", 1, 0)) == 1


async def test_an_id_may_come_again_after_the_duplicate_window() -> None:
    clock = ManualClock()
    queue = MemoryCommandQueue(clock)
    assert await queue.publish(START, b"{}", command="c1")
    clock.advance(119_000)
    assert not await queue.publish(START, b"{}", command="c1")
    clock.advance(2_000)
    assert await queue.publish(START, b"{}", command="c1")


@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("cmd.new.any.>", "cmd.new.any.cli.x", True),
        ("cmd.new.any.>", "cmd.new.any", False),
        ("cmd.*.d1.>", "cmd.ctl.d1.gw", True),
        ("cmd.*.d1.>", "cmd.ctl.any.gw", False),
        ("a.b", "a.b.c", False),
    ],
)
def test_filters_match_as_on_nats(pattern: str, subject: str, fits: bool) -> None:
    assert matches(pattern, subject) is fits


@pytest.mark.parametrize(("before", "after"), [(1, 0), (0, 1), (0, 0), (1, 1)])
async def test_a_moved_clock_wakes_every_pull_that_waits(before: int, after: int) -> None:
    """A lease that lapses by the move is delivered at once, whatever the pulls of other consumers are about to do.

    `before` and `after` the lease is shortened, the loop turns so many times.
    """
    clock = ManualClock()
    queue = MemoryCommandQueue(clock)
    await queue.ensure_consumers((CTL_ANY, NEW_ANY))
    other = asyncio.create_task(queue.pull(CTL_ANY.name, 1, 30.0))
    await asyncio.sleep(0.01)
    await queue.publish(START, b"{}", command="c1")
    await asyncio.sleep(0)
    (first,) = await queue.pull(NEW_ANY.name, 1, 1.0)
    waiting = asyncio.create_task(queue.pull(NEW_ANY.name, 1, 30.0))
    for _ in range(before):
        await asyncio.sleep(0)
    await first.nak(1.0)
    for _ in range(after):
        await asyncio.sleep(0)
    clock.advance(1000)
    async with asyncio.timeout(5.0):
        (second,) = await waiting
    assert second.claim.delivery == 2
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)


async def test_a_pull_that_is_cancelled_in_the_moment_in_which_it_is_woken_ends() -> None:
    """A process of a test is ended right after it published or armed something itself."""
    clock = ManualClock()
    queue, timers = MemoryCommandQueue(clock), MemoryTimers(clock)
    await queue.ensure_consumers((NEW_ANY,))
    pulls = [asyncio.create_task(queue.pull(NEW_ANY.name, 1, 60.0)), asyncio.create_task(timers.pull("send", 1, 60.0))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.advance(1)
    await asyncio.sleep(0)
    for pull in pulls:
        pull.cancel()
    done, late = await asyncio.wait(pulls, timeout=5.0)
    assert not late and all(pull.cancelled() for pull in done)
