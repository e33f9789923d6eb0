"""Recurring runs: each time has one run or none, by the rule for times that were missed."""

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduler.plant import START_MS, Plant

from waybook.agents import Agent, Schedule, ScheduledEvent, StopEvent, step
from waybook.agents.definition import define
from waybook.agents.errors import DefinitionError
from waybook.agents.schedule import Missed
from waybook.services.scheduler.recurring import GRACE_MS, due, look_back_ms, planned

MINUTE_MS = 60_000
QUARTER_MS = 15 * MINUTE_MS


class Tick(ScheduledEvent, frozen=True, kw_only=True):
    """A run begins."""


class Told(StopEvent, frozen=True, kw_only=True):
    """For when it was scheduled."""

    at: int


def quarterly(missed: Missed = "latest", catch_up_s: float = 3600.0) -> Schedule:
    """Every quarter of an hour."""
    return Schedule(name="quarter", cron="*/15 * * * *", start=Tick(), missed=missed, catch_up_s=catch_up_s)


def clockwork(schedule: Schedule) -> type[Agent]:
    class Clockwork(Agent):
        """Says for when it was scheduled."""

        name = "clockwork"
        schedules = (schedule,)

        @step
        async def tell(self, tick: Tick) -> Told:
            return Told(at=tick.scheduled_at)

    return Clockwork


@given(
    pauses=st.lists(st.integers(1, 100 * MINUTE_MS), min_size=1, max_size=20),
    missed=st.sampled_from(["skip", "latest", "all"]),
)
def test_every_time_begins_once_or_is_dropped(pauses: list[int], missed: Missed) -> None:
    """However often it is looked: no time begins twice, none is forgotten, none begins too late for the rule."""
    schedule = quarterly(missed)
    seen = START_MS
    begun: list[int] = []
    dropped: list[int] = []
    for pause in pauses:
        now = seen + pause
        found = due(schedule, seen, now)
        begun += found.begin
        dropped += found.dropped
        late = [at for at in found.begin if now - at > GRACE_MS]
        assert all(now - at <= schedule.catch_up_s * 1000 for at in late)
        assert len(late) <= {"skip": 0, "latest": 1, "all": 100}[missed]
        if missed == "all":
            assert all(now - at > schedule.catch_up_s * 1000 for at in found.dropped)
        seen = now
    assert sorted([*begun, *dropped]) == schedule.between(START_MS, seen)
    assert len(set(begun)) == len(begun)


def test_a_time_zone_keeps_its_hours_when_the_clock_is_changed() -> None:
    """Seven in the morning in Zurich is another UTC hour in summer."""
    daily = Schedule(name="morning", cron="0 7 * * *", start=Tick(), zone="Europe/Zurich")
    begin = datetime(2027, 3, 27, 12, tzinfo=UTC)
    hours = []
    at = round(begin.timestamp() * 1000)
    for _ in range(2):
        following = daily.next_after(at)
        assert following is not None
        at = following
        hours.append(datetime.fromtimestamp(at / 1000, UTC).hour)
    assert hours == [5, 5]
    assert datetime.fromtimestamp((daily.next_after(round(datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1000)) or 0)
                                  / 1000, UTC).hour == 6  # fmt: skip


@pytest.mark.parametrize(("cron", "zone"), [("every day", "UTC"), ("61 * * * *", "UTC"), ("* * * * *", "Mars/Base")])
def test_what_is_no_schedule_is_refused_where_it_is_written(cron: str, zone: str) -> None:
    with pytest.raises(DefinitionError, match="schedule odd"):
        Schedule(name="odd", cron=cron, start=Tick(), zone=zone)


async def test_schedulers_side_by_side_begin_one_run_for_each_time() -> None:
    """Two schedulers look; each time has one run, which is told its time, in the thread of the schedule."""
    plant = Plant()
    agent = clockwork(quarterly())
    plans = planned("main", [define(agent)])
    await plant.walk(agent)
    for _ in range(2):
        plant.schedule(plans=plans)
    times = [START_MS + n * QUARTER_MS for n in range(4)]
    for at in times:
        plant.clock.advance(at - plant.clock.now())
        key = plans[0].run(at)
        await plant.until(lambda key=key: plant.stands(key) == "completed")  # type: ignore[misc]
        run = plant.run(key)
        assert run is not None
        assert run.result is not None
        assert bytes(run.event(run.result).payload) == b'{"at":%d}' % at
    threads = {run.thread for at in times if (run := plant.run(plans[0].run(at))) is not None}
    assert len(threads) == 1
    assert len({r.subject for r in plant.state.records if ".clockwork." in r.subject}) == len(times)
    await plant.close()


@pytest.mark.parametrize(("missed", "made_up"), [("skip", []), ("latest", [3]), ("all", [1, 2, 3])])
async def test_times_without_a_scheduler_are_made_up_for_by_rule(missed: Missed, made_up: list[int]) -> None:
    """A scheduler that was away for three quarters of an hour begins none, the last, or all of the runs, once."""
    plant = Plant()
    schedule = quarterly(missed)
    agent = clockwork(schedule)
    plans = planned("main", [define(agent)])
    await plant.walk(agent)
    plant.clock.advance(3 * QUARTER_MS + 5 * MINUTE_MS)
    assert look_back_ms(schedule) == (GRACE_MS if missed == "skip" else 3_600_000)
    for _ in range(2):  # the second one finds everything done
        plant.schedule(plans=plans)
        await asyncio.sleep(0.1)
        keys = [plans[0].run(START_MS + n * QUARTER_MS) for n in made_up]
        await plant.until(lambda keys=keys: all(plant.stands(key) == "completed" for key in keys))  # type: ignore[misc]
    begun = {r.subject.rpartition(".")[2] for r in plant.state.records if ".clockwork." in r.subject}
    wanted = {key.run for key in keys}
    assert begun - wanted <= ({plans[0].run(START_MS).run} if missed == "all" else set())
    assert wanted <= begun
    assert not plant.commands.waiting
    await plant.close()
