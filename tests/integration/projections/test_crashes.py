"""The projector killed, its servers stopped, its consumer gone: nothing is lost, nothing counted twice."""

import asyncio
import os
import signal
import sys

import asyncpg
import pytest
from tests.integration.projections.child import child
from tests.integration.projections.installation import DURABLE, STREAM, Installation, installed, until
from tests.unit.projections import histories as h

from waybook.events.commit import Position
from waybook.projections.projector import Projector
from waybook.testing.servers import NatsUnderTest, ServerUnderTest


async def test_killed_in_the_middle_of_a_batch_and_started_again(installation: Installation) -> None:
    """Of an unfinished batch nothing is stored; the next process goes on from the checkpoint in SQL (P19)."""
    await installation.project_until(await installation.append_walks(1))
    blocker = await asyncpg.connect(installation.database_url)
    try:
        for first in (100, 200):
            transaction = blocker.transaction()
            await transaction.start()
            await blocker.execute("LOCK TABLE waybook_g1.agent_actions")
            before = await installation.position()
            last = await installation.append_walks(30, first=first)
            async with child(installation) as process:
                await until(lambda: _waits_for_a_lock(installation))
                await process.kill()
            await transaction.rollback()
            assert await installation.position() == before
            async with child(installation):
                await installation.applied(last)
    finally:
        await blocker.close()
    found = await installation.verified()
    assert (found.differing, found.commits, found.rows) == (0, last, 61 * 6)


async def _waits_for_a_lock(installation: Installation) -> bool:
    """Whether a projector stands in the middle of its transaction."""
    query = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'waybook_g1.agent_actions'::regclass"
    return bool(await installation.rows(query))


async def test_postgresql_away_for_a_while(clean_nats: NatsUnderTest, own_postgres: ServerUnderTest) -> None:
    """It waits, with a reader that has buffered commits, and loses none."""
    async with installed(clean_nats.url, own_postgres.url) as installation, installation.projecting() as projector:
        last = await installation.append_walks(60)
        await projector.wait_until(Position(STREAM, last // 2), 20)
        await own_postgres.kill()
        last = await installation.append_walks(60, first=1_000)
        await until(lambda: _is(projector, "waiting"))
        await own_postgres.start()
        await projector.wait_until(Position(STREAM, last), 30)
        assert projector.health == "running"
        assert (await installation.verified()).differing == 0


async def _is(projector: Projector, health: str) -> bool:
    return projector.health == health


async def test_nats_killed_and_started_again(own_nats: NatsUnderTest, database_url: str) -> None:
    async with installed(own_nats.url, database_url) as installation, installation.projecting() as projector:
        last = await installation.append_walks(40)
        await projector.wait_until(Position(STREAM, last // 2), 20)
        await own_nats.kill()
        await own_nats.start()
        last = await installation.append_walks(40, first=1_000)
        await projector.wait_until(Position(STREAM, last), 30)
        assert (await installation.verified()).differing == 0


async def test_a_deleted_consumer_is_made_again(installation: Installation) -> None:
    async with installation.projecting() as projector:
        last = await installation.append_walks(20)
        await projector.wait_until(Position(STREAM, last), 20)
        await installation.client.jetstream().delete_consumer(STREAM, DURABLE)
        last = await installation.append_walks(20, first=1_000)
        await projector.wait_until(Position(STREAM, last), 20)
    assert (await installation.verified()).differing == 0


async def test_a_consumer_that_runs_ahead_is_set_back(installation: Installation) -> None:
    """What somebody else took from the durable consumer comes to the reader all the same."""
    async with installation.projecting() as projector:
        await projector.wait_until(Position(STREAM, await installation.append_walks(1)), 20)
    last = await installation.append_walks(20, first=1_000)
    thief = await installation.client.jetstream().pull_subscribe_bind(DURABLE, STREAM)
    taken = await thief.fetch(50, timeout=5)
    await taken[-1].ack_sync()
    await installation.project_until(last)
    assert (await installation.verified()).differing == 0


async def test_a_thief_of_single_commits_makes_a_hole_that_is_read_again(installation: Installation) -> None:
    """A reader that sees a jump while it works starts again from the checkpoint."""
    async with installation.projecting() as projector:
        await projector.wait_until(Position(STREAM, await installation.append_walks(1)), 20)
        thief = await installation.client.jetstream().pull_subscribe_bind(DURABLE, STREAM)
        stealing = asyncio.create_task(thief.fetch(200, timeout=3))
        last = 0
        for number in range(10):
            last = await installation.append_walks(10, first=1_000 + number * 10)
        await projector.wait_until(Position(STREAM, last), 30)
        await asyncio.gather(stealing, return_exceptions=True)
    assert (await installation.verified()).differing == 0


async def test_of_two_readers_one_stands_by_until_the_other_is_gone(installation: Installation) -> None:
    async with child(installation) as first:
        last = await installation.append_walks(10)
        await installation.applied(last)
        async with installation.projecting() as second:
            await until(lambda: _is(second, "standby"))
            last = await installation.append_walks(10, first=100)
            await installation.applied(last)
            assert await _is(second, "standby")
            await first.kill()
            last = await installation.append_walks(10, first=200)
            await second.wait_until(Position(STREAM, last), 20)
            assert await _is(second, "running")
    assert (await installation.verified()).differing == 0


async def test_the_process_ends_cleanly_on_a_signal(installation: Installation) -> None:
    async with child(installation) as process:
        await installation.applied(await installation.append_walks(5))
        assert await process.terminate() == 0
        assert await process.error_text() == ""


async def test_the_process_ends_with_its_parent(installation: Installation) -> None:
    """A killed parent tells nobody; the child sees that it has another one."""
    code = (
        "import subprocess, sys, os, time; "
        "p = subprocess.Popen([sys.executable, '-m', 'waybook.projections', *sys.argv[1:], '--parent', str(os.getpid())]);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    addresses = ("--nats-url", installation.nats_url, "--database-url", installation.database_url)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *addresses, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    await installation.applied(await installation.append_walks(1))
    parent.send_signal(signal.SIGKILL)
    await parent.wait()

    async def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with open(f"/proc/{pid}/stat") as stat:  # noqa: ASYNC230
            return stat.read().rpartition(")")[2].split()[0] == "Z"

    await until(gone)


async def test_the_process_says_why_it_cannot_go_on(installation: Installation) -> None:
    await installation.append([(h.key(), h.commit(1, h.moved("received", "failed")))])
    async with child(installation) as process:
        assert await process.ended() == 1
        assert "its first commit, at sequence 1, starts nothing" in await process.error_text()


@pytest.mark.parametrize("options", [("--stream",), ("--nats-url", "")])
async def test_wrong_options_are_refused(installation: Installation, options: tuple[str, ...]) -> None:
    async with child(installation, *options) as process:
        assert await process.ended() == 2
