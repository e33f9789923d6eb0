"""An endpoint that limits its callers: no call before the time that it named, and no failure for the wait."""

import pytest
from tests.unit.scheduler.flaky import Flaky, Side, attempts
from tests.unit.scheduler.plant import FIVE_MINUTES_MS, START_MS, Plant

from waybook.agents import RetryAfter
from waybook.agents.definition import define
from waybook.agents.retry_after import retry_after_s
from waybook.engine.hold import hold
from waybook.events.subjects import RunKey

RUNS = [RunKey("main", "flaky", f"r{number}") for number in range(20)]
IN_SEVEN_S = "Fri, 15 Jan 2027 08:00:07 GMT"
DAY_MS = 86_400_000


class Endpoint(Side):
    """Answers each run's first call with 429 and this header, later ones with 200."""

    def __init__(self, header: str, plant_now: object) -> None:
        super().__init__(self._limited, plant_now)  # type: ignore[arg-type]
        self._header = header

    def _limited(self, call: int) -> None:
        if call > 1:
            return
        seconds = retry_after_s(self._header, self._now())
        if seconds is None:
            raise ConnectionError("429 Too Many Requests")
        raise RetryAfter(seconds, "429 Too Many Requests")


def limited(header: str) -> Plant:
    return Plant(lambda clock: Endpoint(header, clock.now))


async def all_called(plant: Plant, *, slots: int = 64) -> None:
    """All runs were told to wait at the same moment."""
    await plant.walk(slots=slots)
    plant.schedule()
    await plant.start(*RUNS)
    await plant.until(lambda: plant.side.calls["ask"] == len(RUNS) and not plant.commands.waiting)
    await plant.until(lambda: not plant.notices.behind)


@pytest.mark.parametrize("header", ["7", IN_SEVEN_S])
async def test_twenty_runs_wait_as_asked_then_go_on_one_after_the_other_and_none_has_failed(header: str) -> None:
    """Seconds or a date: no call before it, spread after it, the count of the step stays."""
    plant = limited(header)
    await all_called(plant)
    assert {at for _, at in plant.side.at} == {START_MS}
    plant.clock.advance(6_900)
    await plant.until(lambda: not plant.timers.due)
    assert plant.side.calls["ask"] == len(RUNS), "somebody called before the time that was named"
    await plant.until(lambda: all(plant.stands(key) == "completed" for key in RUNS), pass_ms=100)
    again = [at - START_MS for _, at in plant.side.at[len(RUNS) :]]
    assert len(again) == len(RUNS) and min(again) >= 7_000 and max(again) <= 7_000 + 7_000
    assert len(set(again)) > 5, "they come together again"
    for key in RUNS:
        run = plant.run(key)
        assert run is not None and run.failures == {} and attempts(run, "ask") == ["released", "completed"]
    await plant.close()


async def test_an_answer_that_names_no_time_is_an_ordinary_failure() -> None:
    plant = limited("shortly")
    await all_called(plant)
    run = plant.run(RUNS[0])
    assert run is not None and run.failures == {"ask": 1}
    assert [retry.due for retry in run.retries.values()] == [START_MS + FIVE_MINUTES_MS]
    await plant.close()


async def test_a_very_long_wait_parks_the_run_with_its_due_time_and_frees_its_slot() -> None:
    """A day is more than the step's budget, so it counts as a failure; nobody calls before the day is over."""
    plant = limited("86400")
    await all_called(plant, slots=2)  # twenty runs passed two slots
    plant.clock.advance(DAY_MS - 1)
    await plant.until(lambda: not plant.timers.due)
    assert plant.side.calls["ask"] == len(RUNS)
    run = plant.run(RUNS[0])
    assert run is not None
    held = hold(define(Flaky).engine, run)
    assert (held.kind, held.until) == ("retry", START_MS + DAY_MS)
    await plant.until(lambda: all(plant.stands(key) == "completed" for key in RUNS), pass_ms=1_000)
    await plant.close()
