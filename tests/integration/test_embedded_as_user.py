"""The embedded servers under a user without rights, tested from a test run of root's."""

import asyncio
import encodings.idna  # noqa: F401  # loaded before the user changes, who may be unable to read it
import os
import pwd
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from waybook.adapters.embedded import DataDirectory, Servers, programs
from waybook.adapters.embedded.unprivileged import User, can_enter
from waybook.testing import servers

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="every other test runs as a user without rights already")


@pytest.fixture
def nobody() -> User:
    entry = pwd.getpwnam("nobody")
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid)


@pytest.fixture
def reachable_programs(nobody: User, reachable_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the programs, where the environment of the tests is closed to other users."""
    nats_server = programs.nats_server()
    if not can_enter(nobody, nats_server):
        copied = reachable_folder / "nats-server"
        shutil.copy2(nats_server, copied)
        monkeypatch.setenv("WAYBOOK_NATS_SERVER", str(copied))
    postgres = programs.postgres_bin()
    if not can_enter(nobody, postgres / "postgres"):
        package = programs.copy_postgres(postgres, reachable_folder / "programs").parent.parent
        (package / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(package.parent)


def _as_user(user: User, work: Callable[[], None], timeout_s: float = 60.0) -> int:
    """Runs `work` in a fork of this process, which has all modules loaded; returns its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(user.gid)
            os.setuid(user.uid)
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


@pytest.mark.usefixtures("reachable_programs")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_user_without_rights_starts_both_servers_and_finds_the_data_again(nobody: User) -> None:
    folder = servers.reachable_folder()
    os.chown(folder, nobody.uid, nobody.gid)
    report = folder / "report"

    async def walk() -> None:
        directory = DataDirectory.resolve(None, {"XDG_STATE_HOME": str(folder / "state")})
        for statement in ("CREATE TABLE kept AS SELECT 7 AS id", "DROP TABLE kept"):
            started = Servers(directory, "up")
            async with started as addresses:
                database = await asyncpg.connect(addresses.database_url)
                await database.execute(statement)
                await database.close()
                assert started.nats is not None
                assert started.nats.alive
        report.write_text(str(directory.path))

    assert _as_user(nobody, lambda: asyncio.run(walk())) == 0
    assert report.read_text() == str(folder / "state" / "waybook")
    assert (folder / "state" / "waybook").stat().st_mode & 0o077 == 0
    shutil.rmtree(folder)
