"""Runs that are wide and runs that are long, on a real server: what the graph bench measures also holds here."""

from bench.graphs import walked_on
from bench.long_run import LongRun

from waybook.services.bootstrap.topology import ensure_topology
from waybook.testing.servers import NatsUnderTest


async def test_a_hundred_results_of_one_run_take_five_commits_at_most(clean_nats: NatsUnderTest) -> None:
    """What waits for a run is merged into one commit; no result is lost or stored twice by that."""
    await ensure_topology(clean_nats.url)
    async with walked_on(clean_nats.url) as bench:
        assert min([await bench.appends() for _ in range(3)]) <= 5
        await bench.completions_s(4)  # asserts that every step of the wide graphs was done once


async def test_a_long_run_is_decided_fast_and_loaded_from_its_snapshot(clean_nats: NatsUnderTest) -> None:
    """A decision does not look through the history, and a new process does not fold all of it."""
    await ensure_topology(clean_nats.url)
    async with walked_on(clean_nats.url) as bench:
        long_run = LongRun(bench.wiring)
        assert await long_run.grow(3_000) < 5.0  # ms of CPU; generous, for a machine that others use
        with_it = min([await long_run.cold_ms(snapshot=True) for _ in range(3)])
        without = min([await long_run.cold_ms(snapshot=False) for _ in range(3)])
        assert with_it < without
