"""Batches staged in memory are stored as those staged on disk, whatever becomes of the staging."""

import asyncio
from pathlib import Path

import pytest

from waybook.adapters.embedded import NatsServer, batch_staging
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.engine.ports import Draft
from waybook.events.headers import COMMIT
from waybook.services.bootstrap.topology import ensure_topology

STREAM = "STATE_g1_00"
SIDE_BY_SIDE = 20

pytestmark = pytest.mark.skipif(not batch_staging.MEMORY.is_dir(), reason="there is no file system in memory here")


def _staging(server: NatsServer) -> Path:
    folder = next(server.folder.glob(f"jetstream/*/streams/{STREAM}"))
    return folder / batch_staging.STAGING


async def _append(server: NatsServer, round_: int) -> list[int]:
    """Twenty first commits side by side: enough that they go as a batch."""
    async with await Connection.open(NatsSettings(servers=(server.url,))) as connection:
        log = NatsStateLog(connection, STREAM)
        names = [f"{round_}-{n}" for n in range(SIDE_BY_SIDE)]
        drafts = [Draft(f"state.g1.00.t.a.{name}", 0, b"{}", {COMMIT: name}, name) for name in names]
        return await asyncio.gather(*(log.append(draft) for draft in drafts))


async def test_batches_staged_in_memory_survive_a_kill_and_a_restart(tmp_path: Path) -> None:
    """Every acknowledged commit is there after SIGKILL, batches work before and after, and nothing stays behind."""
    server = NatsServer(tmp_path / "nats")
    await server.start()
    try:
        await ensure_topology(server.url)
        assert sorted(await _append(server, 1)) == list(range(1, 21))
        server.stage_batches_in_memory((STREAM,))
        target = _staging(server).readlink()
        assert target.parent == batch_staging.MEMORY
        assert sorted(await _append(server, 2)) == list(range(21, 41))
        await server.kill()
        await server.start()
        assert not _staging(server).is_symlink() and not target.exists()
        assert sorted(await _append(server, 3)) == list(range(41, 61))
        server.stage_batches_in_memory((STREAM,))
        assert sorted(await _append(server, 4)) == list(range(61, 81))
        target = _staging(server).readlink()
    finally:
        await server.stop()
    assert not target.exists() and not _staging(server).is_symlink()


async def test_a_staging_folder_whose_memory_is_gone_does_not_stop_the_server(tmp_path: Path) -> None:
    """After a reboot the folder in memory is gone: the next start forgets it and stages on disk."""
    server = NatsServer(tmp_path / "nats")
    await server.start()
    try:
        await ensure_topology(server.url)
        server.stage_batches_in_memory((STREAM,))
        await server.kill()
        _staging(server).readlink().rmdir()
        await server.start()
        assert sorted(await _append(server, 1)) == list(range(1, 21))
    finally:
        await server.stop()
