"""The embedded nats-server."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import pytest
import pytest_asyncio

from waybook.adapters.embedded import (
    AddressTaken,
    DataDirectoryUnusable,
    NatsServer,
    ProgramMissing,
    ServerStartFailed,
    ServerUnreachable,
    read_monitor,
)
from waybook.adapters.embedded.file_lock import FileLock
from waybook.adapters.embedded.server import Record


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    server = NatsServer(tmp_path / "nats")
    yield server
    await server.stop()


@pytest.fixture
def foreign_process() -> Iterator[subprocess.Popen[bytes]]:
    """A living process that has nothing to do with any server."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate(b"\n", timeout=10)


async def _store_one(url: str) -> None:
    connection = await nats.connect(url)
    await connection.jetstream().add_stream(name="KEPT", subjects=["kept"])
    await connection.jetstream().publish("kept", b"1")
    await connection.close()


async def _stored(url: str) -> int:
    connection = await nats.connect(url)
    try:
        return int((await connection.jetstream().stream_info("KEPT")).state.messages)
    finally:
        await connection.close()


async def test_it_listens_on_loopback_and_syncs_every_message(server: NatsServer) -> None:
    await server.start()
    varz = await read_monitor(server.monitor_url, "varz")
    assert (varz["host"], varz["http_host"]) == ("127.0.0.1", "127.0.0.1")
    assert varz["jetstream"]["config"]["sync_always"] is True
    assert server.url == f"nats://127.0.0.1:{varz['port']}"
    assert server.version == varz["version"]


async def test_the_servers_default_sync_and_a_store_limit_can_be_asked_for(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats", sync_always=False, max_store_bytes=50_000_000)
    await server.start()
    config = (await read_monitor(server.monitor_url, "varz"))["jetstream"]["config"]
    await server.stop()
    assert not config.get("sync_always")
    assert config["max_storage"] == 50_000_000


async def test_its_messages_survive_its_end_and_the_next_server_gets_the_same_ports(
    server: NatsServer, tmp_path: Path
) -> None:
    await server.start()
    await _store_one(server.url)
    await server.stop()
    assert not server.alive
    another = NatsServer(tmp_path / "nats")
    await another.start()
    assert await _stored(another.url) == 1
    assert another.url == server.url
    await another.stop()


async def test_after_a_kill_it_starts_at_the_same_address(server: NatsServer) -> None:
    await server.start()
    await _store_one(server.url)
    before = (server.url, server.monitor_url)
    await server.kill()
    await server.start()
    assert (server.url, server.monitor_url) == before
    assert await _stored(server.url) == 1


async def test_a_paused_server_answers_again_when_it_goes_on(server: NatsServer) -> None:
    await server.start()
    server.pause()
    with pytest.raises(ServerUnreachable):
        await read_monitor(server.monitor_url, "healthz", timeout_s=0.3)
    server.resume()
    assert (await read_monitor(server.monitor_url, "healthz"))["status"] == "ok"


async def test_starting_a_running_server_changes_nothing(server: NatsServer) -> None:
    await server.start()
    assert server.process is not None
    pid = server.process.pid
    await server.start()
    assert server.process.pid == pid


@pytest.mark.parametrize("which", ["port", "monitor_port"])
async def test_a_taken_port_is_named(tmp_path: Path, which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = NatsServer(tmp_path / "nats", **{which: port})
        with pytest.raises(AddressTaken, match=f"127.0.0.1:{port}"):
            await server.start()
    assert not server.alive


async def test_a_start_that_fails_shows_what_the_log_says(tmp_path: Path) -> None:
    folder = tmp_path / "nats"
    folder.mkdir()
    (folder / "jetstream").write_text("a file where a folder has to be")
    server = NatsServer(folder)
    with pytest.raises(ServerStartFailed, match=r"ended with code 1.*nats-server\.log.*\n.*not a directory"):
        await server.start()
    assert not server.alive


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryUnusable, match="file/nats"):
        await NatsServer(tmp_path / "file" / "nats").start()


async def test_a_program_that_is_missing_is_named(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBOOK_NATS_SERVER", "/nowhere/nats-server")
    with pytest.raises(ProgramMissing, match="/nowhere/nats-server"):
        await server.start()


async def test_a_cancelled_start_leaves_no_server(server: NatsServer) -> None:
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0)
    assert server.process is not None
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not server.alive


async def test_a_server_left_behind_is_taken_over(server: NatsServer, tmp_path: Path) -> None:
    """The object is forgotten as a killed owner forgets it; killed owners themselves: test_embedded_servers."""
    await server.start()
    assert server.process is not None
    heir = NatsServer(tmp_path / "nats")
    await heir.start()
    assert heir.adopted
    assert heir.process is not None
    assert heir.process.pid == server.process.pid
    assert (heir.url, heir.monitor_url, heir.version) == (server.url, server.monitor_url, server.version)
    await heir.stop()
    async with asyncio.timeout(10):
        while server.alive:  # noqa: ASYNC110 - the kernel tells its parent, this process, a moment later
            await asyncio.sleep(0.01)


async def test_a_server_left_behind_with_other_settings_is_replaced(server: NatsServer, tmp_path: Path) -> None:
    await server.start()
    await _store_one(server.url)
    heir = NatsServer(tmp_path / "nats", sync_always=False)
    await heir.start()
    assert not server.alive
    assert not heir.adopted
    assert await _stored(heir.url) == 1
    await heir.stop()


async def test_a_server_left_behind_that_hangs_is_replaced(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    await server.start()
    server.pause()
    heir = NatsServer(tmp_path / "nats", stop_timeout_s=0.2)
    await heir.start()
    assert not server.alive
    assert not heir.adopted
    await heir.stop()


async def test_a_server_left_behind_without_a_record_is_replaced(server: NatsServer, tmp_path: Path) -> None:
    """Its owner was killed after starting it and before writing that down."""
    await server.start()
    (tmp_path / "nats" / "server.json").unlink()
    heir = NatsServer(tmp_path / "nats")
    await heir.start()
    assert not server.alive
    assert not heir.adopted
    await heir.stop()


async def test_a_foreign_process_with_the_old_pid_is_left_alone(
    server: NatsServer, tmp_path: Path, foreign_process: subprocess.Popen[bytes]
) -> None:
    await server.start()
    await server.kill()
    (tmp_path / "nats" / "nats.pid").write_text(str(foreign_process.pid))
    heir = NatsServer(tmp_path / "nats")
    await heir.start()
    assert not heir.adopted
    assert foreign_process.poll() is None
    await heir.stop()


async def test_a_foreign_process_is_left_alone_even_when_the_folder_is_locked(
    server: NatsServer, tmp_path: Path, foreign_process: subprocess.Popen[bytes]
) -> None:
    """What holds the lock cannot be told: nothing is ended, and the error says where to look."""
    await server.start()
    await server.stop()
    (tmp_path / "nats" / "nats.pid").write_text(str(foreign_process.pid))
    lock = FileLock(tmp_path / "nats" / "lock")
    assert lock.acquire()
    heir = NatsServer(tmp_path / "nats", start_timeout_s=0.3)
    with pytest.raises(ServerStartFailed, match="fuser"):
        await heir.start()
    lock.release()
    assert foreign_process.poll() is None


async def test_a_damaged_record_is_ignored(server: NatsServer, tmp_path: Path) -> None:
    await server.start()
    await server.stop()
    (tmp_path / "nats" / "server.json").write_text('{"process": ')
    await server.start()
    assert server.alive
    assert isinstance(server._read_record(), Record)


async def test_a_long_log_is_set_aside(server: NatsServer, tmp_path: Path) -> None:
    (tmp_path / "nats").mkdir()
    server.log.write_bytes(b"x" * (9 * 1024 * 1024))
    await server.start()
    assert server.log.stat().st_size < 100_000
    assert (tmp_path / "nats" / "nats-server.log.1").exists()


async def test_paths_with_blanks_quotes_and_other_scripts_work(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / 'a "b" é 日本 \\ $HOME' / "nats")
    await server.start()
    await _store_one(server.url)
    await server.stop()
    assert (server.folder / "jetstream").is_dir()
    assert os.listdir(server.folder / "jetstream")
