"""Rebuilding beside the live read models, and comparing them with the log."""

import asyncio

import asyncpg
import pytest
from tests.integration.projections.installation import STREAM, Installation, until

from waybook.events.commit import Position
from waybook.projections.copy import copying
from waybook.projections.errors import NoReadModels, RebuildRunning
from waybook.projections.rebuild import rebuild
from waybook.projections.status import status
from waybook.projections.verify import verify


async def test_a_rebuild_under_load_swaps_without_losing_a_commit(installation: Installation) -> None:
    """Readers of the views see each commit once it was there, before, during and after the swap."""
    told: list[tuple[int, int]] = []
    async with installation.projecting() as projector:
        await projector.wait_until(Position(STREAM, await installation.append_walks(150)), 20)

        async def load() -> int:
            last = 0
            for number in range(8):
                last = await installation.append_walks(25, first=1_000 + 25 * number)
            return last

        loading = asyncio.create_task(load())
        watching = asyncio.create_task(_never_backwards(installation))
        done = await rebuild(
            installation.connection,
            installation.database_url,
            installation.settings,
            progress=lambda n, total: told.append((n, total)),
        )
        last = await loading
        await projector.wait_until(Position(STREAM, last), 20)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
    assert (done.generation, done.replaced) == (2, 1)
    assert told[0][1] >= 900
    assert all(n <= total for n, total in told)
    assert await installation.position() == last
    found = await installation.verified()
    assert (found.differing, found.rows) == (0, 350 * 6)
    schemas = await installation.rows("SELECT schema FROM waybook.generation")
    assert [r["schema"] for r in schemas] == ["waybook_g2"]


async def _never_backwards(installation: Installation) -> None:
    """Fails when the position in the views goes back; runs until cancelled."""
    seen = 0
    while True:
        position = await installation.position()
        assert position >= seen
        seen = position
        await asyncio.sleep(0.005)


async def test_a_rebuild_needs_no_projector_and_no_earlier_read_models(installation: Installation) -> None:
    await installation.append_walks(3)
    done = await rebuild(installation.connection, installation.database_url, installation.settings)
    assert (done.commits, done.replaced) == (18, None)
    assert await installation.position() == 18
    await installation.project_until(await installation.append_walks(1, first=10))
    assert (await installation.verified()).differing == 0


async def test_a_rebuild_waits_for_a_query_that_holds_the_views(installation: Installation) -> None:
    await installation.project_until(await installation.append_walks(1))
    reader = await asyncpg.connect(installation.database_url)
    try:
        transaction = reader.transaction()
        await transaction.start()
        await reader.fetch("SELECT * FROM waybook.inbound_messages")
        rebuilding = asyncio.create_task(
            rebuild(installation.connection, installation.database_url, installation.settings)
        )

        async def swapping() -> bool:
            waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
            return bool(await installation.rows(waiting))

        await until(swapping)
        await transaction.rollback()
        assert (await rebuilding).generation == 2
    finally:
        await reader.close()


async def test_one_rebuild_or_verification_at_a_time(installation: Installation) -> None:
    await installation.append_walks(1)
    async with copying(installation.connection, installation.database_url, "waybook", (STREAM,)):
        with pytest.raises(RebuildRunning):
            await rebuild(installation.connection, installation.database_url, installation.settings)
        with pytest.raises(RebuildRunning):
            await installation.verified()


async def test_what_a_killed_rebuild_left_behind_is_removed_by_the_next(installation: Installation) -> None:
    await installation.append_walks(1)
    await rebuild(installation.connection, installation.database_url, installation.settings)
    await installation.execute(
        "INSERT INTO waybook.generation (number, schema, state, handlers) "
        "VALUES (nextval('waybook.generation_number'), 'waybook_g2', 'building', 1)"
    )
    await installation.execute("CREATE SCHEMA waybook_g2")
    await rebuild(installation.connection, installation.database_url, installation.settings)
    schemas = await installation.rows("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'waybook%' ORDER BY 1")
    assert [r["nspname"] for r in schemas] == ["waybook", "waybook_g3"]


async def test_rows_of_other_handlers_are_called_outdated(installation: Installation) -> None:
    await installation.append_walks(1)
    await rebuild(installation.connection, installation.database_url, installation.settings)
    await installation.execute("UPDATE waybook.generation SET handlers = 0")
    assert (await status(installation.connection, installation.database_url)).outdated
    await rebuild(installation.connection, installation.database_url, installation.settings)
    assert not (await status(installation.connection, installation.database_url)).outdated


async def test_verify_names_every_row_changed_by_hand(installation: Installation) -> None:
    """A changed value, a deleted row, an invented row."""
    await installation.project_until(await installation.append_walks(20))
    assert (await installation.verified()).differences == ()
    await installation.execute("UPDATE inbound_messages SET status = 'sent' WHERE run = 'run000007'")
    await installation.execute("DELETE FROM agent_actions WHERE run = 'run000003' AND step = 'draft'")
    await installation.execute(
        'INSERT INTO inbound_messages SELECT (m).* FROM (SELECT jsonb_populate_record(t, \'{"run": "x"}\') AS m '
        "FROM inbound_messages AS t WHERE run = 'run000001') AS changed"
    )
    found = await installation.verified()
    assert found.differing == 3
    by_kind = {d.kind: d for d in found.differences}
    changed = by_kind["different"]
    assert (changed.table, changed.key["run"]) == ("inbound_messages", "run000007")
    assert {n: (c.stored, c.expected) for n, c in changed.columns.items()} == {"status": ("sent", "draft_ready")}
    assert (by_kind["missing"].table, by_kind["missing"].key["run"]) == ("agent_actions", "run000003")
    assert (by_kind["unexpected"].table, by_kind["unexpected"].key["run"]) == ("inbound_messages", "x")


async def test_verify_compares_at_the_position_of_the_live_tables_while_commits_come(
    installation: Installation,
) -> None:
    async with installation.projecting() as projector:
        await projector.wait_until(Position(STREAM, await installation.append_walks(40)), 20)

        async def load() -> None:
            for number in range(10):
                await installation.append_walks(10, first=1_000 + 10 * number)

        loading = asyncio.create_task(load())
        for _ in range(2):
            assert (await installation.verified()).differing == 0
        await loading


async def test_there_is_nothing_to_verify_before_the_first_start(installation: Installation) -> None:
    with pytest.raises(NoReadModels):
        await verify(installation.connection, installation.database_url, installation.settings)
