"""The contract of Timers and Notices, on every adapter."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import get_args

import pytest
from tests.contract.ports.adapters_under_test import draft

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.adapters.memory.timers import MemoryNotices, MemoryTimers
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.notices import NatsNotices
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.adapters.nats.timers import NatsTimers
from waybook.engine.ports import Draft, Fire, Notice, Notices, StateLog, TimerRef, Timers
from waybook.events.engine import TimerClass
from waybook.events.headers import PARENT, TYPES
from waybook.events.subjects import RunKey

KEY = RunKey("test", "inbox", "r1")
LEASE_S = 1.0
SOON_S = 5.0


class Waiting:
    """Timers and notices of one adapter. `now` is the server's clock, `sleep` lets it go on."""

    def __init__(
        self, timers: Timers, notices: Notices, log: StateLog, now: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:  # fmt: skip
        self.timers = timers
        self.notices = notices
        self.log = log
        self.now = now
        self.sleep = sleep

    def timer(self, name: str = "1.0", in_s: float = 0.0, kind: TimerClass = "retry", run: str = "r1") -> TimerRef:
        return TimerRef(RunKey("test", "inbox", run), name, kind, self.now() + round(in_s * 1000))


@pytest.fixture(params=["memory", "nats"])
def waiting(request: pytest.FixtureRequest) -> Waiting:
    """Every adapter in turn."""
    if request.param == "memory":
        clock = ManualClock()
        log = MemoryStateLog(clock)

        async def sleep(seconds: float) -> None:
            clock.advance(round(seconds * 1000))

        return Waiting(
            MemoryTimers(clock, lease_ms=round(LEASE_S * 1000)),
            MemoryNotices(log, {"TimerArmed"}),
            log,
            clock.now,
            sleep,
        )
    connection: Connection = request.getfixturevalue("connection")
    return Waiting(
        NatsTimers(connection, ack_wait_s=LEASE_S),
        NatsNotices(connection, "STATE_g1_00", {"TimerArmed"}),
        NatsStateLog(connection, "STATE_g1_00"),
        lambda: time.time_ns() // 1_000_000,
        asyncio.sleep,
    )


@pytest.fixture(autouse=True)
async def consumers(waiting: Waiting) -> None:
    await waiting.timers.ensure_consumers()
    await waiting.notices.ensure_consumer()


async def fires(waiting: Waiting, kind: TimerClass = "retry", within_s: float = SOON_S) -> Sequence[Fire]:
    return await waiting.timers.pull(kind, 10, within_s)


async def test_a_due_timer_fires_once_with_its_name_class_and_due_time(waiting: Waiting) -> None:
    timer = waiting.timer("12.3", in_s=-1)
    assert await waiting.timers.arm(timer)
    [fire] = await fires(waiting)
    assert fire.timer == timer
    assert abs(fire.fired_at - waiting.now()) < 2_000
    await fire.ack()
    await waiting.sleep(LEASE_S * 1.3)
    assert not await fires(waiting, within_s=0.5)
    assert not await waiting.timers.standing()


async def test_a_timer_does_not_fire_before_its_time(waiting: Waiting) -> None:
    timer = waiting.timer(in_s=1.5)
    await waiting.timers.arm(timer)
    assert not await fires(waiting, within_s=0.4)
    assert await waiting.timers.standing() == {(KEY, "1.0")}
    await waiting.sleep(1.5)
    [fire] = await fires(waiting)
    assert fire.fired_at >= timer.due


async def test_arming_twice_keeps_the_first_and_says_so(waiting: Waiting) -> None:
    """A paused scheduler that arms late must not replace what stands there (R3.2)."""
    assert await waiting.timers.arm(waiting.timer(in_s=3600))
    assert not await waiting.timers.arm(waiting.timer(in_s=-1))
    assert not await fires(waiting, within_s=0.5)


async def test_a_timer_can_be_armed_anew_after_its_fire(waiting: Waiting) -> None:
    """A redelivered arm after the fire costs a useless fire and no more; an early fire is armed again under its name."""
    await waiting.timers.arm(waiting.timer(in_s=-1))
    [fire] = await fires(waiting)
    assert await waiting.timers.arm(fire.timer, waiting.now() + 3_600_000)
    await fire.ack()
    assert await waiting.timers.standing() == {(KEY, "1.0")}
    assert not await fires(waiting, within_s=0.3)


async def test_a_cancelled_timer_does_not_fire_and_leaves_nothing(waiting: Waiting) -> None:
    await waiting.timers.arm(waiting.timer(in_s=0.6))
    await waiting.timers.cancel(KEY, "1.0")
    await waiting.timers.cancel(KEY, "9.9")  # there is none
    assert not await waiting.timers.standing()
    await waiting.sleep(0.7)
    assert not await fires(waiting, within_s=0.4)


async def test_a_cancelled_timer_that_fired_and_was_not_taken_is_gone_too(waiting: Waiting) -> None:
    await waiting.timers.arm(waiting.timer(in_s=-1))
    await waiting.timers.arm(waiting.timer("1.1", in_s=-1))
    await waiting.sleep(1.0)
    await waiting.timers.cancel(KEY, "1.0")
    assert [fire.timer.name for fire in await fires(waiting)] == ["1.1"]


async def test_a_fire_that_is_not_acknowledged_comes_again(waiting: Waiting) -> None:
    await waiting.timers.arm(waiting.timer(in_s=-1))
    assert len(await fires(waiting)) == 1
    assert not await fires(waiting, within_s=0.2)
    assert await waiting.timers.standing() == {(KEY, "1.0")}
    await waiting.sleep(LEASE_S * 1.2)
    [again] = await fires(waiting)
    await again.nak()
    [at_once] = await fires(waiting)
    await at_once.ack()


async def test_classes_are_taken_apart(waiting: Waiting) -> None:
    """Ten thousand retries do not stand before the end of an undo window."""
    for kind in get_args(TimerClass):
        await waiting.timers.arm(waiting.timer(in_s=-1, kind=kind, run=f"run-{kind}"))
    for kind in ("wait", "send", "retry", "deadline"):
        [fire] = await fires(waiting, kind)  # type: ignore[arg-type]
        assert (fire.timer.timer_class, fire.timer.key.run) == (kind, f"run-{kind}")


async def test_a_recreated_consumer_brings_outstanding_fires_at_once(waiting: Waiting) -> None:
    """The one owner of an installation does not wait for the lease of the process that it replaces."""
    await waiting.timers.arm(waiting.timer(in_s=-1))
    assert len(await fires(waiting)) == 1
    await waiting.timers.ensure_consumers(recreate=True)
    assert len(await fires(waiting)) == 1


# --- notices


def commit(run: str, expected: int, types: str, **more: str) -> Draft:
    plain = draft(run, expected, types)
    return Draft(plain.subject, expected, plain.payload, {**plain.headers, TYPES: types, **more}, plain.commit)


async def told(waiting: Waiting, count: int) -> list[Notice]:
    """So many notices, or what there is after a second without one."""
    found: list[Notice] = []
    deadline = time.monotonic() + SOON_S
    while len(found) < count and time.monotonic() < deadline:
        found += await waiting.notices.pull(10, 0.5)
    return found


async def test_only_commits_of_wanted_types_and_of_children_are_told(waiting: Waiting) -> None:
    await waiting.log.append(commit("a", 0, "RunStarted,StepBegan"))
    await waiting.log.append(commit("b", 0, "StepFailed,TimerArmed,RetryScheduled"))
    await waiting.log.append(commit("c", 0, "EventPublished/TimerArmedElsewhere,StepBegan"))
    await waiting.log.append(commit("d", 0, "RunEnded", **{PARENT: "inbox/a/1.0"}))
    notices = await told(waiting, 2)
    assert [n.subject.rpartition(".")[2] for n in notices] == ["b", "d"]
    assert [n.sequence for n in notices] == [2, 4]
    assert notices[0].headers[TYPES] == "StepFailed,TimerArmed,RetryScheduled"
    record = await waiting.notices.read(notices[0])
    assert record is not None and record.payload == commit("b", 0, "StepFailed,TimerArmed,RetryScheduled").payload
    await waiting.notices.ack(notices)
    assert not await waiting.notices.pull(10, 0.3)


async def test_what_was_told_and_not_acknowledged_is_told_again_after_a_rewind(waiting: Waiting) -> None:
    for run in ("a", "b", "c"):
        await waiting.log.append(commit(run, 0, "TimerArmed"))
    first, second, third = await told(waiting, 3)
    await waiting.notices.ack([first])
    await asyncio.sleep(0.05)
    await waiting.notices.ensure_consumer(rewind=True)
    assert [n.sequence for n in await told(waiting, 2)] == [second.sequence, third.sequence]
