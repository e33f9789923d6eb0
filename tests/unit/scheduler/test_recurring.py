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


async def test_a_clock_that_was_ahead_for_a_while_costs_no_run() -> None:
    """A clock that jumps ten hours ahead and is set right begins what is due by the right clock, and nothing twice."""
    plant = Plant()
    agent = clockwork(quarterly())
    plans = planned("main", [define(agent)])
    await plant.walk(agent)
    plant.schedule(plans=plans)
    ahead = START_MS + 40 * QUARTER_MS
    for at in (START_MS, ahead, START_MS + QUARTER_MS, START_MS + 2 * QUARTER_MS):
        plant.clock.advance(at - plant.clock.now())
        await plant.until(lambda at=at: plant.stands(plans[0].run(at)) == "completed")  # type: ignore[misc]
    assert len([r for r in plant.state.records if "RunEnded" in r.headers.get("Waybook-Types", "")]) == 4
    await plant.close()


@pytest.mark.parametrize("missed", ["skip", "latest", "all"])
def test_what_is_looked_at_is_bounded_and_none_of_it_is_forgotten(missed: Missed) -> None:
    """A schedule of every second after hours of standstill: all is looked at in the end, the newest time begins."""
    now = START_MS + 12 * 3_600_000
    schedule = Schedule(name="s", cron="* * * * * *", start=Tick(), missed=missed, catch_up_s=4 * 3600)
    seen = START_MS
    begun: list[int] = []
    for _ in range(5):
        found = due(schedule, seen, now)
        begun += found.begin
        seen = found.until
    assert seen == now
    assert begun[-1] == now
    assert len(begun) == len(set(begun))
    if missed == "all":
        assert len(begun) == 4 * 3600


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("cron", 5, "no cron expression"), ("cron", "0 0 30 2 *", "no cron expression"), ("zone", None, "no time zone"),
        ("missed", "never", "one of skip, latest, all"), ("catch_up_s", float("nan"), "number of seconds"),
        ("catch_up_s", -1, "number of seconds"), ("start", Tick, "no start event"), ("start", Told(at=1), "no start event"),
        ("configuration", None, "a dictionary"), ("name", "Morning", "a-z"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_work_is_refused_where_it_is_written(field: str, value: object, text: str) -> None:
    right = {"name": "odd", "cron": "* * * * *", "start": Tick()}
    with pytest.raises(DefinitionError, match=text):
        Schedule(**(right | {field: value}))  # type: ignore[arg-type]


class Elsewhere(ScheduledEvent, frozen=True, kw_only=True):
    """No step takes it."""


@pytest.mark.parametrize(
    ("schedules", "text"),
    [
        ((quarterly(), quarterly("all")), "a name of its own"),
        ((Schedule(name="s", cron="* * * * *", start=Elsewhere()),), "not Elsewhere, but Tick"),
        ((Schedule(name="s", cron="* * * * *", start=Tick(scheduled_at="x")),), "can be stored"),  # type: ignore[arg-type]
        ((Schedule(name="s", cron="* * * * *", start=Tick(), configuration={"tone": 1}),), "there is no `tone`"),
    ],
)
def test_a_schedule_that_does_not_fit_its_agent_is_told_before_the_first_run(
    schedules: tuple[Schedule, ...], text: str
) -> None:
    class Clockwork(Agent):
        """Says for when it was scheduled."""

        name = "clockwork"

        @step
        async def tell(self, tick: Tick) -> Told:
            return Told(at=tick.scheduled_at)

    Clockwork.schedules = schedules
    with pytest.raises(DefinitionError, match=text):
        define(Clockwork)


@pytest.mark.parametrize("cron", ["* * * * * *", "*/15 * * * *", "0 7 29 2 *"])
def test_the_last_times_are_those_that_were_next(cron: str) -> None:
    """The last times up to a moment are the ones that come one after the other from before it."""
    schedule = Schedule(name="s", cron=cron, start=Tick(), zone="Europe/Zurich")
    last = schedule.last(START_MS, 3)
    assert len(last) == 3
    at: int | None = last[0] - 1
    for one in last:
        assert at is not None
        at = schedule.next_after(at)
        assert at == one
    assert at is not None
    assert (schedule.next_after(at) or START_MS + 1) > START_MS
