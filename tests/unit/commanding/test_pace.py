"""Many commands at a bounded rate, answers in order."""

import asyncio
import time

import pytest

from waybook.services.commanding.pace import SIDE_BY_SIDE, at_pace


async def test_answers_come_in_order_and_calls_at_the_rate() -> None:
    told: list[int] = []
    at: list[float] = []

    async def give(number: int) -> int:
        at.append(time.monotonic())
        await asyncio.sleep(0.01 * (5 - number))
        return number * 10

    assert await at_pace(range(5), give, per_s=100, told=told.append) == [0, 10, 20, 30, 40]
    assert told == [1, 2, 3, 4, 5]
    assert at[-1] - at[0] >= 0.035


async def test_slow_answers_bound_how_many_are_under_way() -> None:
    under_way = most = 0

    async def give(number: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1

    await at_pace(range(40), give, per_s=10_000, told=lambda count: None)
    assert most <= SIDE_BY_SIDE


async def test_what_breaks_one_ends_all() -> None:
    async def give(number: int) -> None:
        if number == 1:
            raise LookupError("no walker")
        await asyncio.Event().wait()

    with pytest.raises(LookupError):
        async with asyncio.timeout(5):
            await at_pace(range(3), give, per_s=1_000, told=lambda count: None)
