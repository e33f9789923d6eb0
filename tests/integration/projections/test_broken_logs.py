"""Streams that do not continue what the read models hold: the projection stops and says so."""

import pytest
from tests.integration.projections.installation import STREAM, Installation

from waybook.events.commit import Position
from waybook.projections.errors import LogGap, LogShorter
from waybook.projections.rebuild import rebuild
from waybook.projections.verify import verify


async def test_a_deleted_commit_is_a_gap(installation: Installation) -> None:
    last = await installation.append_walks(10)
    await installation.client.jetstream().delete_msg(STREAM, 31)
    with pytest.raises(LogGap, match="lacks 31 while its last sequence is 60"):
        await installation.project_until(last)
    assert await installation.position() == 30


async def test_a_commit_deleted_behind_the_checkpoint_is_a_gap_at_the_next_start(installation: Installation) -> None:
    await installation.project_until(await installation.append_walks(1))
    last = await installation.append_walks(1, first=10)
    await installation.client.jetstream().delete_msg(STREAM, 7)
    with pytest.raises(LogGap, match="lacks 7"):
        await installation.project_until(last)


async def test_a_purged_stream_is_a_gap(installation: Installation) -> None:
    await installation.project_until(await installation.append_walks(1))
    last = await installation.append_walks(2, first=10)
    await installation.client.jetstream().purge_stream(STREAM, keep=3)
    with pytest.raises(LogGap, match="lacks 7"):
        await installation.project_until(last)


async def _replace(installation: Installation, runs: int) -> int:
    await installation.client.jetstream().delete_stream(STREAM)
    await installation.make_stream()
    return await installation.append_walks(runs, first=500) if runs else 0


async def test_a_shorter_stream_stops_the_projection(installation: Installation) -> None:
    """Commits were lost: going on would hide it."""
    last = await installation.append_walks(3)
    await installation.project_until(last)
    await _replace(installation, 1)
    with pytest.raises(LogShorter, match="ends at 6, before the checkpoint 18"):
        await installation.project_until(last + 1)


async def test_a_stream_that_was_replaced_is_noticed_even_when_it_is_longer(installation: Installation) -> None:
    """The commit at the checkpoint is another one."""
    await installation.project_until(await installation.append_walks(3))
    last = await _replace(installation, 5)
    with pytest.raises(LogShorter, match="another commit at the checkpoint 18"):
        await installation.project_until(last)


async def test_a_missing_stream_stops_a_projection_that_has_read_it(installation: Installation) -> None:
    await installation.project_until(await installation.append_walks(1))
    await installation.client.jetstream().delete_stream(STREAM)
    with pytest.raises(LogShorter, match="is missing"):
        await installation.project_until(7)


async def test_a_projection_waits_for_a_stream_that_is_not_made_yet(installation: Installation) -> None:
    await installation.client.jetstream().delete_stream(STREAM)
    async with installation.projecting() as projector:
        await installation.make_stream()
        await projector.wait_until(Position(STREAM, await installation.append_walks(1)), 20)


async def test_a_stream_that_shrinks_under_a_running_projection_stops_it(installation: Installation) -> None:
    with pytest.raises(LogShorter):
        async with installation.projecting() as projector:
            await projector.wait_until(Position(STREAM, await installation.append_walks(3)), 20)
            await _replace(installation, 0)
            await projector.wait_until(Position(STREAM, 100), 20)


async def test_a_rebuild_goes_by_what_is_left(installation: Installation) -> None:
    """The way out that the message names."""
    await installation.project_until(await installation.append_walks(3))
    await _replace(installation, 1)
    done = await rebuild(installation.connection, installation.database_url, installation.settings)
    assert done.commits == 6
    async with installation.projecting() as projector:
        await projector.wait_until(Position(STREAM, await installation.append_walks(1, first=900)), 20)
    assert len(await installation.rows("SELECT 1 FROM waybook.inbound_messages")) == 2


async def test_verify_refuses_a_log_that_is_shorter_than_the_read_models(installation: Installation) -> None:
    await installation.project_until(await installation.append_walks(3))
    await _replace(installation, 1)
    with pytest.raises(LogShorter):
        await verify(installation.connection, installation.database_url, installation.settings)
