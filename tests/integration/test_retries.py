"""Retries end to end on real servers: a timer for each failure, and whoever is killed meanwhile costs nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.integration.retried import (
    ACK_WAIT_S,
    FLAKY,
    PATIENT,
    installed,
    scheduled,
    start,
    until,
    until_state,
    walked,
)
from tests.unit.scheduler.flaky import Fails, HangingSide, Side, attempts

from waybook.adapters.nats.notices import NatsNotices
from waybook.adapters.nats.timers import NatsTimers
from waybook.engine.hooks import Details, TimerRearmed
from waybook.engine.ports import Fire, Notice
from waybook.events.commit import Position
from waybook.events.engine import StepReused, TimerClass, TimerFired
from waybook.projections.read_models import ReadModels
from waybook.projections.verify import verify
from waybook.services.bootstrap.beside import beside
from waybook.services.bootstrap.installation import Installation, projecting
from waybook.services.reading.hints import ReadModelHints
from waybook.services.reading.models import last_position
from waybook.services.scheduler.following import WANTED
from waybook.services.scheduler.scheduler import Scheduler, SchedulerOptions, SchedulerPorts
from waybook.testing.history import events_of, read_history
from waybook.testing.servers import NatsUnderTest


class Killed(Exception):
    """The process ended here."""


class Wrong:
    """A clock that goes wrong by `ms`."""

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def now(self) -> int:
        return time.time_ns() // 1_000_000 + self.ms


def ports(installation: Installation, **other: object) -> SchedulerPorts:
    """A scheduler's ports on the server, `other` in their place."""
    wiring = installation.wiring
    own: dict[str, object] = {
        "state": wiring.state,
        "notices": NatsNotices(wiring.connection, wiring.state.stream, WANTED, ack_wait_s=ACK_WAIT_S),
        "timers": NatsTimers(wiring.connection, ack_wait_s=ACK_WAIT_S),
        "commands": wiring.commands,
        "clock": wiring.clock,
    }
    return SchedulerPorts(**{**own, **other})  # type: ignore[arg-type]


async def test_a_failed_step_is_tried_again_when_its_timer_fires_and_what_was_done_stays(
    clean_nats: NatsUnderTest,
) -> None:
    side = Side(Fails(2))
    async with installed(clean_nats) as installation, walked(installation, side):
        timers = NatsTimers(installation.wiring.connection)
        assert not await timers.is_served()
        async with scheduled(installation):
            [key] = await start(installation, "r1")
            run = await until_state(installation, key, "completed")
            assert await timers.is_served()
        assert attempts(run, "ask") == ["failed", "failed", "completed"]
        assert side.calls["prepare"] == 1
        events = [event for _, event in events_of(await read_history(installation.wiring.state, key))]
        assert sum(isinstance(event, TimerFired) for event in events) == 2
        assert [event.step for event in events if isinstance(event, StepReused)] == ["prepare", "prepare"]
        assert not await timers.standing()


async def test_killed_in_retry_backoff_an_empty_process_goes_on(clean_nats: NatsUnderTest) -> None:
    """Walker and scheduler are gone while the timer waits, and fires; new ones know nothing but what is stored."""
    side = Side(Fails(1))
    async with installed(clean_nats) as installation:
        async with walked(installation, side), scheduled(installation):
            [key] = await start(installation, "r1")
            await until_state(installation, key, "failed")
            timers = NatsTimers(installation.wiring.connection)
            await until(lambda: _is_armed(timers, 1))
    assert side.calls["ask"] == 1
    await asyncio.sleep(1.5)  # it fires meanwhile
    again = Side()
    async with installed(clean_nats) as installation, walked(installation, again), scheduled(installation):
        run = await until_state(installation, key, "completed")
        assert attempts(run, "ask") == ["failed", "completed"]
        assert (again.calls["ask"], again.calls["prepare"]) == (1, 0)


async def test_a_failure_that_no_scheduler_saw_is_taken_up_by_the_next_one(clean_nats: NatsUnderTest) -> None:
    side = Side(Fails(1))
    async with installed(clean_nats) as installation, walked(installation, side):
        [key] = await start(installation, "r1")
        await until_state(installation, key, "failed")
        async with scheduled(installation):
            await until_state(installation, key, "completed")


async def _is_armed(timers: NatsTimers, count: int) -> bool:
    return len(await timers.standing()) == count


class DiesBeforeAck(NatsNotices):
    """Its process ends after what follows was done, and before that is acknowledged."""

    async def ack(self, notices: Sequence[Notice]) -> None:
        if notices:
            raise Killed


class DyingFire:
    """A fire whose process ends before it is acknowledged."""

    def __init__(self, fire: Fire) -> None:
        self.timer = fire.timer
        self.fired_at = fire.fired_at

    async def ack(self) -> None:
        raise Killed

    async def nak(self, delay_s: float = 0.0) -> None:
        raise Killed


class DiesAfterHandOver(NatsTimers):
    """Its process ends after a fire's command was stored, and before the fire is acknowledged."""

    async def pull(self, timer_class: TimerClass, batch: int, timeout_s: float) -> Sequence[Fire]:  # type: ignore[override]
        return [DyingFire(fire) for fire in await super().pull(timer_class, batch, timeout_s)]


@pytest.mark.parametrize("boundary", ["arm", "hand over"])
async def test_a_scheduler_killed_before_it_acknowledges_leaves_duplicates_that_change_nothing(
    clean_nats: NatsUnderTest, boundary: str
) -> None:
    side = Side(Fails(1))
    async with installed(clean_nats) as installation, walked(installation, side):
        connection, stream = installation.wiring.connection, installation.wiring.state.stream
        dying = (
            ports(installation, notices=DiesBeforeAck(connection, stream, WANTED))
            if boundary == "arm"
            else ports(installation, timers=DiesAfterHandOver(connection))
        )
        [key] = await start(installation, "r1")
        with pytest.raises(Killed):
            await Scheduler(dying).run()
        async with scheduled(installation):
            run = await until_state(installation, key, "completed")
            assert attempts(run, "ask") == ["failed", "completed"]
            timers = NatsTimers(connection)
            await until(lambda: _is_armed(timers, 0))
        events = [event for _, event in events_of(await read_history(installation.wiring.state, key))]
        assert sum(isinstance(event, TimerFired) for event in events) == 1


async def test_two_schedulers_share_the_work_and_one_of_them_dies(clean_nats: NatsUnderTest) -> None:
    """No election: what one took and did not acknowledge comes to the other after its lease."""
    side = Side(Fails(2))
    runs = [f"r{number}" for number in range(30)]
    async with installed(clean_nats) as installation, walked(installation, side), scheduled(installation):
        dying = asyncio.create_task(Scheduler(ports(installation)).run())
        keys = await start(installation, *runs)
        await until(lambda: _asked(side, len(runs) + 5))
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        for key in keys:
            run = await until_state(installation, key, "completed")
            assert attempts(run, "ask") == ["failed", "failed", "completed"]
        assert side.calls["ask"] == 3 * len(runs) and side.calls["prepare"] == len(runs)


async def _asked(side: Side, times: int) -> bool:
    return side.calls["ask"] >= times


async def test_with_its_clock_an_hour_behind_nothing_is_early_and_little_is_late(clean_nats: NatsUnderTest) -> None:
    """The fire seems an hour early, so it is armed again; when the clock is right, the next look hands it over."""
    side = Side(Fails(1))
    told: list[Details] = []
    clock = Wrong(-3_600_000)
    async with installed(clean_nats) as installation, walked(installation, side):
        options = SchedulerOptions(look_again_ms=1_000)
        scheduler = Scheduler(ports(installation, clock=clock), options=options, hook=told.append)
        async with running(scheduler):
            [key] = await start(installation, "r1")
            await until(lambda: _was_rearmed(told, 2))
            assert (await until_state(installation, key, "failed")).timers
            clock.ms = 0
            await until_state(installation, key, "completed")


async def test_with_its_clock_an_hour_ahead_the_server_s_clock_decides(clean_nats: NatsUnderTest) -> None:
    side = Side(Fails(1))
    async with installed(clean_nats) as installation, walked(installation, side, PATIENT):
        async with running(Scheduler(ports(installation, clock=Wrong(3_600_000)))):
            [key] = await start(installation, "r1")
            await until_state(installation, key, "failed")
            timers = NatsTimers(installation.wiring.connection)
            await until(lambda: _is_armed(timers, 1))
            await asyncio.sleep(0.5)
            assert side.calls["ask"] == 1


async def _was_rearmed(told: Sequence[Details], times: int) -> bool:
    return sum(isinstance(one, TimerRearmed) for one in told) >= times


@asynccontextmanager
async def running(scheduler: Scheduler) -> AsyncIterator[None]:
    async with beside(scheduler.run()):
        try:
            yield
        finally:
            await scheduler.stop()


async def test_timers_purged_by_hand_are_armed_again_and_the_read_models_agree_with_the_log(
    clean_nats: NatsUnderTest, database_url: str
) -> None:
    """What `wake_at` says is armed, whatever became of TIMERS."""
    side = Side(Fails(1))
    async with installed(clean_nats, database_url) as installation, walked(installation, side, PATIENT):
        async with projecting(installation):
            hints = ReadModelHints(database_url, [PATIENT])
            scheduler = Scheduler(ports(installation, hints=hints))
            async with running(scheduler):
                keys = await start(installation, "r1", "r2")
                runs = [await until_state(installation, key, "failed") for key in keys]
                timers = NatsTimers(installation.wiring.connection)
                await until(lambda: _is_armed(timers, 2))
                await caught_up(installation)
                assert await scheduler.rounds.reconcile() == 0
                await installation.wiring.connection.client.jetstream().purge_stream("TIMERS")
                assert await scheduler.rounds.reconcile() == 2
                assert await timers.standing() == {(run.key, name) for run in runs for name in run.timers}
            async with ReadModels.open(database_url) as models:
                assert await models.settled(["r1", "r2"]) == 2, "`run` waits for what is failed with a retry"
                [first, _] = await models.messages()
                assert first["wake_at"] == first["hold_until"] and first["hold"] == "retry"
            verified = await verify(installation.wiring.connection, database_url)
            assert (verified.differing, verified.differences) == (0, ())


async def test_a_run_whose_command_was_lost_is_found_and_goes_on(clean_nats: NatsUnderTest, database_url: str) -> None:
    """Its worker went, and COMMANDS was purged by hand: `continue` gives the open step its next attempt."""
    hanging, side = HangingSide(), Side()
    async with installed(clean_nats, database_url) as installation, projecting(installation):
        async with walked(installation, hanging):
            [key] = await start(installation, "r1")
            await hanging.asked.wait()
        await installation.wiring.connection.client.jetstream().purge_stream("COMMANDS")
        await caught_up(installation)
        async with walked(installation, side):
            hints = ReadModelHints(database_url, [FLAKY])
            async with running(Scheduler(ports(installation, hints=hints), options=SchedulerOptions(still_ms=0))):
                run = await until_state(installation, key, "completed")
        assert attempts(run, "ask") == ["released", "completed"]
        assert (side.calls["ask"], side.calls["prepare"]) == (1, 0)


async def caught_up(installation: Installation) -> None:
    """The read models hold what STATE holds now."""
    position: Position = await last_position(installation.wiring)
    async with ReadModels.open(installation.database_url) as models:
        await models.wait_until(position, 20.0)
