"""When a fire is handed over, when it is armed again, and how many are handed over at once."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybook.engine.ports import TimerRef
from waybook.events.subjects import RunKey
from waybook.services.scheduler.allowance import TokenBucket
from waybook.services.scheduler.firing import EARLY_MS, LOOK_AGAIN_MS, ArmAgain, HandOver, on_fire

HOUR_MS = 3_600_000
NOW = 1_800_000_000_000


def timer(due: int) -> TimerRef:
    return TimerRef(RunKey("main", "inbox", "r1"), "7.1", "retry", due)


@pytest.mark.parametrize("late_ms", [0, -EARLY_MS, 1, HOUR_MS])
def test_a_fire_up_to_two_seconds_early_or_late_at_all_is_handed_over(late_ms: int) -> None:
    assert on_fire(timer(NOW), NOW + late_ms, NOW + late_ms) == HandOver()


def test_a_fire_by_a_server_clock_that_is_ahead_is_armed_so_that_it_does_not_fire_at_once_again() -> None:
    """The server's clock is an hour ahead, ten seconds are left: ten seconds by the server's clock."""
    assert on_fire(timer(NOW + 10_000), NOW + HOUR_MS, NOW) == ArmAgain(NOW + HOUR_MS + 10_000)


def test_with_the_scheduler_s_own_clock_an_hour_behind_it_looks_again_soon() -> None:
    """When the clock is set right again, the timer is not an hour late."""
    assert on_fire(timer(NOW + HOUR_MS), NOW + HOUR_MS, NOW) == ArmAgain(NOW + HOUR_MS + LOOK_AGAIN_MS)


@given(st.integers(-HOUR_MS, HOUR_MS), st.integers(-HOUR_MS, HOUR_MS))
def test_a_timer_armed_again_lies_ahead_by_the_server_s_clock_and_not_far(left: int, skew: int) -> None:
    fired_at = NOW + skew
    verdict = on_fire(timer(NOW + left), fired_at, NOW)
    if isinstance(verdict, ArmAgain):
        assert left > EARLY_MS
        assert verdict.at > fired_at
        assert verdict.at <= max(NOW + left, fired_at + LOOK_AGAIN_MS)
    else:
        assert left <= EARLY_MS


@given(st.floats(0.5, 100), st.integers(1, 50), st.lists(st.tuples(st.floats(0, 5), st.integers(0, 60)), max_size=40))
def test_a_bucket_gives_no_more_than_its_burst_and_its_rate(
    rate: float, burst: int, asked: list[tuple[float, int]]
) -> None:
    now, taken = 0.0, 0
    bucket = TokenBucket(rate, burst, now)
    for later, wanted in asked:
        now += later
        count = min(wanted, bucket.available(now))
        bucket.take(count)
        taken += count
        assert taken <= burst + rate * now + 1e-6
        if bucket.available(now) == 0:
            assert copy.copy(bucket).available(now + bucket.wait_s(now) + 1e-6) >= 1


def test_a_clock_that_goes_back_gives_nothing_away() -> None:
    bucket = TokenBucket(1.0, 2, 10.0)
    bucket.take(2)
    assert bucket.available(5.0) == 0
    assert bucket.available(10.5) == 0
    assert bucket.available(11.0) == 1
