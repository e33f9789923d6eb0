"""A scheduler beside a walker, in memory: what fires when, and what a kill at any boundary costs (nothing)."""

import asyncio
import itertools

import pytest
from tests.unit.scheduler.flaky import Fails, Side, attempts
from tests.unit.scheduler.plant import FIVE_MINUTES_MS, KEY, START_MS, Fuse, Killed, Plant

from waybook.adapters.memory.clock import ManualClock
from waybook.engine.hooks import TimerHandedOver, TimerRearmed
from waybook.engine.ports import Draft, PortUnavailable, TimerRef
from waybook.events.engine import TimerFired
from waybook.events.headers import COMMIT, TYPES
from waybook.events.subjects import RunKey, state_subject
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.effects import StopSends
from waybook.services.scheduler.hints import NoHints, Still
from waybook.services.scheduler.scheduler import Scheduler, SchedulerOptions, SchedulerPorts

HOUR_MS = 3_600_000


def failing(times: int) -> Plant:
    return Plant(lambda clock: Side(Fails(times), clock.now))


class Offset:
    """A clock that goes wrong."""

    def __init__(self, clock: ManualClock, ms: int) -> None:
        self._clock = clock
        self.ms = ms

    def now(self) -> int:
        return self._clock.now() + self.ms


async def test_a_failure_waits_for_the_next_five_minutes_of_the_clock() -> None:
    """The default grid: failed at 0:00:07, tried again at 0:05:00 and not before."""
    plant = failing(1)
    await plant.walk()
    plant.schedule()
    plant.clock.advance(7_000)
    await plant.start()
    await plant.until(lambda: plant.stands() == "failed" and not plant.notices.behind)
    plant.clock.advance(FIVE_MINUTES_MS - 7_001)
    await plant.until(lambda: not plant.timers.due)
    assert (plant.stands(), plant.side.calls["ask"]) == ("failed", 1)
    plant.clock.advance(1)
    await plant.until(lambda: plant.stands() == "completed")
    assert [at - START_MS for _, at in plant.side.at] == [7_000, FIVE_MINUTES_MS]
    await plant.close()


async def test_a_scheduler_killed_at_any_boundary_loses_nothing_and_doubles_nothing() -> None:
    """Each port call is a boundary: before it did anything, and after it did before anybody heard."""
    for at in itertools.count(1):
        plant = failing(2)
        await plant.walk()
        fuse = Fuse(at)
        first = plant.schedule(fuse=fuse)
        await plant.start()
        await plant.until(lambda plant=plant, fuse=fuse: fuse.blown or plant.stands() == "completed", pass_ms=20_000)  # type: ignore[misc]
        if fuse.blown:
            with pytest.raises(Killed):
                await first
            plant.schedule()
            await plant.until(lambda plant=plant: plant.stands() == "completed", pass_ms=20_000)  # type: ignore[misc]
        run = plant.run()
        assert run is not None and attempts(run, "ask") == ["failed", "failed", "completed"], f"killed at {at}"
        assert (plant.side.calls["ask"], plant.side.calls["prepare"]) == (3, 1)
        assert sum(isinstance(event, TimerFired) for event in plant.events()) == 2
        await plant.until(lambda plant=plant: not plant.commands.waiting, pass_ms=20_000)  # type: ignore[misc]
        await plant.close()
        if not fuse.blown:
            break
    assert at > 20, "there are more boundaries than that"


@pytest.mark.parametrize("ms", [HOUR_MS, -HOUR_MS])
async def test_a_scheduler_whose_clock_is_an_hour_wrong_is_never_early(ms: int) -> None:
    """Ahead: the server's clock decides. Behind: it looks again, and is late by a look when it is set right."""
    plant = failing(1)
    await plant.walk()
    wrong = Offset(plant.clock, ms)
    plant.schedule(clock=wrong)
    await plant.start()
    await plant.until(lambda: plant.stands() == "failed" and not plant.notices.behind)
    plant.clock.advance(FIVE_MINUTES_MS)
    if ms < 0:
        await plant.until(lambda: any(isinstance(told, TimerRearmed) for told in plant.told))
        assert plant.stands() == "failed"
        wrong.ms = 0
        plant.clock.advance(30_000)
    await plant.until(lambda: plant.stands() == "completed")
    assert FIVE_MINUTES_MS <= plant.side.at[-1][1] - START_MS <= FIVE_MINUTES_MS + 30_000
    await plant.close()


@pytest.mark.parametrize("ms", [HOUR_MS, -HOUR_MS])
async def test_a_walker_whose_clock_is_an_hour_wrong_is_tried_again_after_the_time_that_it_meant(ms: int) -> None:
    """Neither three failures within a second nor an hour of waiting; what it began ends by its own clock."""
    plant = failing(2)
    await plant.walk(clock=Offset(plant.clock, ms))
    plant.schedule()
    plant.clock.advance(7_000)
    await plant.start()
    await plant.until(lambda: plant.stands() == "completed", pass_ms=5_000)
    waits = [after - before for (_, before), (_, after) in itertools.pairwise(plant.side.at)]
    assert len(waits) == 2 and all(60_000 < wait <= FIVE_MINUTES_MS + 15_000 for wait in waits)
    await plant.close()


async def test_a_walker_s_clock_that_jumps_costs_no_attempt() -> None:
    """An hour forth while a step runs, an hour back before the next: deadlines of steps are kept by one clock."""
    wrong: list[Offset] = []

    class Jumping(Side):
        async def gate(self) -> None:
            wrong[0].ms += HOUR_MS if self.calls["ask"] == 1 else -HOUR_MS

    plant = Plant(lambda clock: Jumping(now=clock.now))
    wrong.append(Offset(plant.clock, 0))
    await plant.walk(clock=wrong[0])
    plant.schedule()
    await plant.start(KEY, RunKey("main", "flaky", "r2"))
    await plant.until(lambda: all(plant.stands(RunKey("main", "flaky", run)) == "completed" for run in ("r1", "r2")))
    assert plant.side.calls["ask"] == 2 and wrong[0].ms == 0
    await plant.close()


async def test_a_thousand_retries_that_are_due_together_begin_at_the_allowed_rate() -> None:
    plant = failing(1)
    await plant.walk()
    plant.schedule(restarts_per_s=100.0, burst=5)
    keys = [RunKey("main", "flaky", f"r{n}") for n in range(40)]
    await plant.start(*keys)
    await plant.until(lambda: all(plant.stands(key) == "failed" for key in keys) and not plant.notices.behind)
    plant.clock.advance(FIVE_MINUTES_MS)
    await plant.until(lambda: any(isinstance(told, TimerHandedOver) for told in plant.told))
    assert sum(isinstance(told, TimerHandedOver) for told in plant.told) < 20
    await plant.until(lambda: all(plant.stands(key) == "completed" for key in keys))
    await plant.close()


class Hinted(NoHints):
    """What a read model would say."""

    def __init__(
        self,
        timers: list[TimerRef] | None = None,
        still: list[Still] | None = None,
        unsent: list[RunKey] | None = None,
    ) -> None:
        self.timers = timers or []
        self.still = still or []
        self._unsent = unsent or []

    async def pending_timers(self) -> list[TimerRef]:
        return self.timers

    async def standing_still(self, since_ms: int) -> list[Still]:
        return self.still

    async def unsent(self, tenant: str) -> list[RunKey]:
        return self._unsent


async def test_a_timer_that_was_purged_is_armed_again_and_one_that_nobody_waits_for_is_not() -> None:
    """The read model says where to look, STATE whether the run still waits."""
    plant = failing(1)
    await plant.walk()
    first = plant.schedule()
    await plant.start()
    await plant.until(lambda: plant.stands() == "failed" and not plant.notices.behind)
    first.cancel()
    run = plant.run()
    assert run is not None
    [name] = run.timers
    await plant.timers.cancel(KEY, name)
    gone = [
        TimerRef(KEY, "1.0", "retry", START_MS),
        TimerRef(RunKey("main", "flaky", "nobody"), "3.0", "retry", START_MS),
    ]
    plant.schedule(hints=Hinted([TimerRef(KEY, name, "retry", START_MS + FIVE_MINUTES_MS), *gone]))
    await plant.until(lambda: plant.stands() == "completed", pass_ms=20_000)
    assert not await plant.timers.standing()
    await plant.close()


async def test_timers_of_old_commits_are_armed_only_when_their_run_still_waits() -> None:
    """A consumer that lost its position is told everything again; years of timers are not armed, all due at once."""
    plant = failing(1)
    await plant.walk()
    first = plant.schedule()
    await plant.start()
    await plant.until(lambda: plant.stands() == "completed", pass_ms=20_000)
    first.cancel()
    plant.clock.advance(HOUR_MS)
    waits = RunKey("main", "flaky", "r2")
    await plant.start(waits)
    await plant.until(lambda: plant.stands(waits) == "failed")
    plant.notices.forget_position()
    plant.clock.advance(HOUR_MS)
    armed: list[TimerRef] = []
    arm = plant.timers.arm

    async def note(timer: TimerRef, at: int | None = None) -> bool:
        armed.append(timer)
        return await arm(timer, at)

    plant.timers.arm = note  # type: ignore[method-assign]
    plant.schedule()
    await plant.until(lambda: plant.stands(waits) == "completed")
    assert {timer.key for timer in armed} == {waits}
    await plant.close()


async def test_a_run_that_stands_still_is_asked_to_go_on_once() -> None:
    """Its commit was stored, and the command under which it ran was lost: nobody would ever be told again."""
    plant = failing(0)
    walker = await plant.walk()
    await plant.start()
    await plant.until(lambda: plant.stands() == "completed")
    await walker.stop()
    run = plant.run()
    assert run is not None
    hints = Hinted(still=[Still(KEY, run.sequence)])
    plant.schedule(hints=hints, round_s=0.02)
    await plant.until(lambda: bool(plant.commands.waiting))
    first = dict(plant.commands.waiting)
    plant.clock.advance(HOUR_MS)  # beyond the window in which an id counts as a repetition
    await plant.until(lambda: not plant.notices.behind)
    assert list(first.values()) == ["cmd.ctl.any.relay.main.flaky.r1.continue"] == list(plant.commands.waiting.values())
    hints.still = [Still(KEY, run.sequence + 9)]
    await plant.until(lambda: len(plant.commands.waiting) == 2)
    await plant.close()


async def test_the_kill_switch_makes_every_run_with_an_unsent_reply_look_again_once(plant: Plant) -> None:
    """Doing it twice gives the same commands."""
    doer = Doer(plant.timers, plant.commands, plant.clock, Hinted(unsent=[KEY]))
    for _ in range(2):
        await doer.do([StopSends("main", "main.@policy._/7.0")])
    assert list(plant.commands.waiting.values()) == ["cmd.ctl.any.relay.main.flaky.r1.continue"]


async def test_a_commit_that_cannot_be_read_holds_nobody_else_up(
    plant: Plant, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, and the timers of all other runs are armed; a newer program's reconciliation finds its own."""
    broken = RunKey("main", "flaky", "broken")
    headers = {TYPES: "TimerArmed", COMMIT: "c"}
    await plant.state.append(Draft(state_subject(broken), 0, b"no commit", headers, "c"))
    await plant.walk()
    plant.schedule(hints=Hinted([TimerRef(broken, "1.0", "retry", START_MS)]))
    await plant.start()
    await plant.until(lambda: plant.stands() == "completed")
    said = {"relay_commit_unreadable", "round_run_unreadable"}
    await plant.until(lambda: said <= {getattr(record, "action", "") for record in caplog.records})


async def test_ports_that_are_away_are_waited_for(plant: Plant) -> None:
    """TIMERS, COMMANDS and STATE away one after the other: it says so, and goes on by itself with what it had."""
    plant.side = Side(Fails(1), plant.clock.now)
    await plant.walk()
    task = plant.schedule()
    await plant.start()
    await plant.until(lambda: plant.stands() == "failed")
    for faults in (plant.timers.faults, plant.notices.faults):
        faults.away()
        await asyncio.sleep(0.05)
        assert not task.done()
        faults.back()
    await plant.until(lambda: plant.stands() == "completed", pass_ms=20_000)


async def test_a_round_that_found_the_database_away_is_made_again_soon(plant: Plant) -> None:
    class Away(Hinted):
        asked = 0

        async def pending_timers(self) -> list[TimerRef]:
            self.asked += 1
            if self.asked == 1:
                raise PortUnavailable("PostgreSQL is away")
            return []

    hints = Away()
    ports = SchedulerPorts(plant.state, plant.notices, plant.timers, plant.commands, plant.clock, hints)
    scheduler = Scheduler(ports, options=SchedulerOptions(round_s=0.05, pull_s=0.02))
    work = asyncio.create_task(scheduler.run())
    await plant.until(lambda: not scheduler.state.healthy)
    await plant.until(lambda: hints.asked > 1 and scheduler.state.healthy)
    await scheduler.stop()
    await work
