"""The embedded PostgreSQL, as the user that runs the tests: also as root."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
import pytest_asyncio

from waybook.adapters.embedded import DataDirectoryUnusable, Postgres, ServerStartFailed, programs
from waybook.adapters.embedded.unprivileged import server_user
from waybook.testing import servers

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="concerns root, and the tests do not run as root")


@pytest.fixture(scope="module")
def shared_folder() -> Iterator[Path]:
    """Making a data folder is what takes longest, so that most tests share one."""
    folder = servers.reachable_folder()
    yield folder / "postgres"
    shutil.rmtree(folder, ignore_errors=True)


@pytest_asyncio.fixture
async def server(shared_folder: Path) -> AsyncIterator[Postgres]:
    server = Postgres(shared_folder, durable=False)
    yield server
    await server.stop()


@pytest.fixture
def foreign_process() -> Iterator[subprocess.Popen[bytes]]:
    """A living process that has nothing to do with any server."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate(b"\n", timeout=10)


async def _ask(url: str, question: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_it_is_durable_and_reached_by_its_owner_through_a_socket_alone(shared_folder: Path) -> None:
    server = Postgres(shared_folder)
    await server.start()
    assert await _ask(server.url, "SHOW fsync") == "on"
    assert await _ask(server.url, "SHOW synchronous_commit") == "on"
    assert await _ask(server.url, "SHOW listen_addresses") == ""
    assert await _ask(server.url, "SHOW server_encoding") == "UTF8"
    assert str(await _ask(server.url, "SHOW server_version")).startswith("18")
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
    await server.stop()


async def test_its_rows_survive_its_end_and_a_kill(server: Postgres) -> None:
    await server.start()
    await _ask(server.url, "CREATE TABLE kept AS SELECT 7 AS id")
    await server.stop()
    assert not server.alive
    await server.start()
    await server.kill()
    await server.start()
    assert await _ask(server.url, "SELECT id FROM kept") == 7


async def test_open_connections_do_not_delay_its_end(server: Postgres) -> None:
    await server.start()
    connection = await asyncpg.connect(server.url)
    await asyncio.wait_for(server.stop(), 5)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await connection.fetchval("SELECT 1")
    connection.terminate()


async def test_a_server_left_behind_is_taken_over(server: Postgres) -> None:
    await server.start()
    assert server.process is not None
    heir = Postgres(server.folder, durable=False)
    await heir.start()
    assert heir.adopted
    assert heir.process is not None
    assert heir.process.pid == server.process.pid
    assert await _ask(heir.url, "SELECT 1") == 1
    await heir.stop()
    assert not server.alive


async def test_a_server_left_behind_without_a_record_is_replaced(server: Postgres) -> None:
    await server.start()
    (server.folder / "server.json").unlink()
    heir = Postgres(server.folder, durable=False)
    await heir.start()
    assert not server.alive
    assert not heir.adopted
    assert await _ask(heir.url, "SELECT 1") == 1
    await heir.stop()


async def test_a_foreign_process_with_the_old_pid_neither_is_ended_nor_stands_in_the_way(
    server: Postgres, foreign_process: subprocess.Popen[bytes]
) -> None:
    """PostgreSQL alone would refuse to start while any process of its user has the pid in its pid file."""
    await server.start()
    await server.kill()
    pid_file = server.folder / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(foreign_process.pid), *lines[1:]]) + "\n")
    await server.start()
    assert await _ask(server.url, "SELECT 1") == 1
    assert foreign_process.poll() is None


async def test_a_first_start_that_was_broken_off_is_begun_anew(reachable_folder: Path) -> None:
    server = Postgres(reachable_folder / "postgres", durable=False)
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0.2)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not (server.folder / "data").exists()
    await server.start()
    assert await _ask(server.url, "SELECT 1") == 1
    await server.stop()


async def test_data_of_another_version_is_refused_with_a_way_out(server: Postgres) -> None:
    await server.start()
    await server.stop()
    (server.folder / "data" / "PG_VERSION").write_text("16\n")
    with pytest.raises(ServerStartFailed, match=r"made by PostgreSQL 16, this is 18.*move it away"):
        await server.start()
    (server.folder / "data" / "PG_VERSION").write_text("18\n")


async def test_a_start_that_fails_shows_what_the_log_says(server: Postgres) -> None:
    await server.start()
    await server.stop()
    configuration = server.folder / "data" / "postgresql.conf"
    before = configuration.read_text()
    configuration.write_text("shared_buffers = nonsense\n")
    with pytest.raises(ServerStartFailed, match=r"ended with code 1.*postgres\.log.*\n.*shared_buffers"):
        await server.start()
    configuration.write_text(before)


async def test_a_path_too_long_for_a_socket_works_and_one_with_blanks_and_other_scripts(reachable_folder: Path) -> None:
    folder = reachable_folder / ("a 'b' é & 日" + "long" * 20) / "postgres"
    folder.parent.mkdir(mode=0o755)
    server = Postgres(folder, durable=False)
    await server.start()
    assert await _ask(server.url, "SELECT 1") == 1
    await server.stop()
    shutil.rmtree(parse_qs(urlsplit(server.url).query)["host"][0])


@as_root
async def test_root_hands_it_to_another_user(server: Postgres) -> None:
    await server.start()
    user = server_user(server.folder)
    assert user is not None
    assert user.uid != 0
    assert server.process is not None
    assert os.stat(f"/proc/{server.process.pid}").st_uid == user.uid
    assert (server.folder / "data").stat().st_uid == user.uid


@as_root
async def test_a_folder_that_the_other_user_cannot_reach_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    barrier = next(path for path in (*reversed(closed.parents), closed) if not path.stat().st_mode & 0o001)
    with pytest.raises(DataDirectoryUnusable, match=f"{barrier} is closed to others.*--data-dir"):
        await Postgres(closed / "postgres").start()


@as_root
async def test_programs_that_the_other_user_cannot_reach_are_copied(
    server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a virtual environment under root's home."""
    copied = programs.copy_postgres(programs.postgres_bin(), tmp_path / "closed")
    package = copied.parent.parent
    (package / "__init__.py").write_text("")
    (tmp_path / "closed").chmod(0o700)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, package.name, raising=False)
    assert programs.postgres_bin() == copied
    await server.start()
    assert server.process is not None
    assert os.readlink(f"/proc/{server.process.pid}/exe").startswith(str(server.folder / "programs"))
    assert await _ask(server.url, "SELECT 1") == 1
