"""A step that always raises beside good ones, an outage beneath a step, and the broker's restart afterwards.

Commands that kill their workers are in `tests/crash/test_convicted.py`.
"""

import asyncio
import time

from tests.integration.retried import FLAKY, give, installed, loaded, scheduled, start, until, until_state, walked
from tests.unit.scheduler.flaky import Side, attempts

from waybook.engine.hold import hold
from waybook.engine.ports import PortUnavailable
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.installation import Installation
from waybook.testing.servers import NatsUnderTest

AWAY_S = 2.0


class Mixed(Side):
    """`bad` always raises; the database that `blip` needs is away for a while; others are fine."""

    def __init__(self) -> None:
        super().__init__()
        self._back_at = time.monotonic() + AWAY_S

    def ask(self, run: str) -> None:
        super().ask(run)
        if run == "bad":
            raise ValueError("this mail cannot be read")
        if run == "blip" and time.monotonic() < self._back_at:
            raise PortUnavailable("PostgreSQL is away")


async def test_what_always_fails_is_left_to_a_person_and_an_outage_costs_no_attempt(own_nats: NatsUnderTest) -> None:
    """Three failures, then exhausted with the error; good runs flow between; after a restart of the broker nothing is
    processed again and nothing forgotten; a person's retry is possible.
    """
    side = Mixed()
    names = ["good-1", "bad", "good-2", "blip", "good-3"]
    async with installed(own_nats) as installation, walked(installation, side), scheduled(installation):
        keys = dict(zip(names, await start(installation, *names), strict=True))
        for name in ("good-1", "good-2", "good-3", "blip"):
            run = await until_state(installation, keys[name], "completed")
            assert attempts(run, "ask") == ["completed"]
        await until(lambda: _is_exhausted(installation, keys["bad"]))
        await _left_to_a_person(installation, keys["bad"], 3)
        calls = side.calls["ask"]
        await own_nats.restart()
        await installation.wiring.connection.until_connected(20.0)
        await asyncio.sleep(1.5)
        assert side.calls["ask"] == calls
        await _left_to_a_person(installation, keys["bad"], 3)
        await give(installation, keys["bad"], "retry")
        await until(lambda: _called(side, calls + 1))
        await until(lambda: _has_failed(installation, keys["bad"], 4))
        await _left_to_a_person(installation, keys["bad"], 4)


async def _left_to_a_person(installation: Installation, key: RunKey, failures: int) -> None:
    run = await loaded(installation, key)
    assert run is not None
    assert attempts(run, "ask") == ["failed"] * failures
    last = [a for a in run.actions.values() if a.step == "ask"][-1]
    assert last.error is not None and "cannot be read" in last.error.text
    assert hold(FLAKY.engine, run).reason == "exhausted" and not run.timers


async def _is_exhausted(installation: Installation, key: RunKey) -> bool:
    run = await loaded(installation, key)
    return run is not None and any(a.exhausted for a in run.actions.values())


async def _has_failed(installation: Installation, key: RunKey, times: int) -> bool:
    run = await loaded(installation, key)
    return run is not None and run.failures.get("ask") == times


async def _called(side: Side, times: int) -> bool:
    return side.calls["ask"] >= times
