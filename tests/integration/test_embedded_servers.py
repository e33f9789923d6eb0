"""The data directory, its owner, and those who read beside it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec
import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client

from waybook.adapters.embedded import (
    Addresses,
    DataDirectory,
    DataDirectoryInUse,
    DataDirectoryUnusable,
    Given,
    Owner,
    Servers,
    ServerStartFailed,
    servers_for_reading,
)
from waybook.adapters.embedded.free_port import is_free
from waybook.adapters.embedded.processes import ProcessId, identify
from waybook.testing.servers import NatsUnderTest, directory_for_tests, end_servers

OWNER = """
import asyncio, pathlib, signal, sys
from waybook.adapters.embedded import DataDirectory, Servers

async def main():
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
    async with Servers(DataDirectory(pathlib.Path(sys.argv[1])), "up"):
        await ended.wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def shared_directory(postgres_template: Path) -> Iterator[DataDirectory]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        yield runner.run(stack.enter_async_context(directory_for_tests(postgres_template)))
        runner.run(stack.aclose())


@pytest_asyncio.fixture
async def data_directory(shared_directory: DataDirectory) -> AsyncIterator[DataDirectory]:
    """One for all tests of this file, which saves many seconds; no server runs in it at a test's begin."""
    yield shared_directory
    await end_servers(shared_directory)


@pytest.fixture
def start_owner() -> Iterator[Callable[[DataDirectory], subprocess.Popen[bytes]]]:
    """Starts a process that owns a data directory as `up` does."""
    started: list[subprocess.Popen[bytes]] = []

    def start(directory: DataDirectory) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", OWNER, str(directory.path)], start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait(10)


async def _until_ready(directory: DataDirectory) -> Owner:
    await _wait_for(lambda: (owner := directory.owner()) is not None and owner.addresses is not None, 30)
    owner = directory.owner()
    assert owner is not None
    return owner


async def _wait_for(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not come true in time"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Client]:
    connection = await nats.connect(url, allow_reconnect=False)
    try:
        yield connection
    finally:
        await connection.close()


async def _answer(addresses: Addresses) -> None:
    async with _connected(addresses.nats_url) as connection:
        await connection.flush()
    database = await asyncpg.connect(addresses.database_url)
    assert await database.fetchval("SELECT 1") == 1
    await database.close()


def _running(servers: Servers) -> list[ProcessId]:
    return [server.process.identity for server in (servers.nats, servers.postgres) if server and server.process]


async def test_an_owner_has_both_servers_and_what_they_store_is_there_the_next_time(
    data_directory: DataDirectory,
) -> None:
    first = Servers(data_directory, "up")
    async with first as addresses:
        assert data_directory.owner() == Owner(
            msgspec.convert(identify(os.getpid()), ProcessId, from_attributes=True), "up", False, addresses
        )
        async with _connected(addresses.nats_url) as connection:
            await connection.jetstream().add_stream(name="KEPT", subjects=["kept"])
        database = await asyncpg.connect(addresses.database_url)
        await database.execute("CREATE TABLE kept AS SELECT 7 AS id")
        await database.close()
        running = _running(first)
        assert len(running) == 2
    assert not any(process.alive for process in running)
    assert data_directory.owner() is None
    async with Servers(data_directory, "run") as addresses:
        async with _connected(addresses.nats_url) as connection:
            assert (await connection.jetstream().account_info()).streams == 1
        database = await asyncpg.connect(addresses.database_url)
        assert await database.fetchval("SELECT id FROM kept") == 7
        await database.close()


async def test_a_killed_owners_servers_are_taken_over(
    data_directory: DataDirectory, start_owner: Callable[[DataDirectory], subprocess.Popen[bytes]]
) -> None:
    owner = start_owner(data_directory)
    before = await _until_ready(data_directory)
    owner.kill()
    owner.wait(10)
    assert data_directory.owner() is None
    assert before.addresses is not None
    await _answer(before.addresses)
    heir = Servers(data_directory, "up")
    async with heir as addresses:
        assert addresses == before.addresses
        assert heir.nats is not None
        assert heir.nats.adopted
        assert heir.postgres is not None
        assert heir.postgres.adopted
        await _answer(addresses)
        running = _running(heir)
    assert not any(process.alive for process in running)


async def test_an_owner_killed_at_its_first_start_leaves_nothing_in_the_way(
    start_owner: Callable[[DataDirectory], subprocess.Popen[bytes]],
) -> None:
    """PostgreSQL's data folder is half made at that moment."""
    async with directory_for_tests() as directory:
        owner = start_owner(directory)
        await _wait_for(lambda: (directory.postgres_folder / "half").exists())
        owner.kill()
        owner.wait(10)
        async with Servers(directory, "up") as addresses:
            await _answer(addresses)


async def test_a_second_owner_is_refused_by_the_name_and_pid_of_the_first(
    data_directory: DataDirectory, start_owner: Callable[[DataDirectory], subprocess.Popen[bytes]]
) -> None:
    owner = start_owner(data_directory)
    ready = await _until_ready(data_directory)
    with pytest.raises(DataDirectoryInUse, match=rf"in use by `waybook up` \(pid {owner.pid}\).*--data-dir"):
        async with Servers(data_directory, "run"):
            pass
    assert ready.addresses is not None
    await _answer(ready.addresses)


async def test_ctrl_c_reaches_the_owner_alone_and_it_ends_its_servers_in_order(
    data_directory: DataDirectory, start_owner: Callable[[DataDirectory], subprocess.Popen[bytes]]
) -> None:
    owner = start_owner(data_directory)
    await _until_ready(data_directory)
    os.killpg(owner.pid, signal.SIGINT)
    assert await asyncio.to_thread(owner.wait, 30) == 0
    assert data_directory.owner() is None
    assert "Server Exiting" in (data_directory.nats_folder / "nats-server.log").read_text()
    assert "database system is shut down" in (data_directory.postgres_folder / "postgres.log").read_text()


async def test_a_reader_uses_the_owners_servers_and_leaves_them_running(
    data_directory: DataDirectory, start_owner: Callable[[DataDirectory], subprocess.Popen[bytes]]
) -> None:
    start_owner(data_directory)
    owner = await _until_ready(data_directory)
    async with servers_for_reading(data_directory, "messages") as addresses:
        assert addresses == owner.addresses
        await _answer(addresses)
    assert data_directory.owner() == owner
    await _answer(addresses)


async def test_a_reader_waits_for_an_owner_that_is_starting(
    data_directory: DataDirectory, start_owner: Callable[[DataDirectory], subprocess.Popen[bytes]]
) -> None:
    owner = start_owner(data_directory)
    await _wait_for(lambda: data_directory.owner() is not None)
    async with servers_for_reading(data_directory, "messages") as addresses:
        found = data_directory.owner()
        assert found is not None
        assert found.process.pid == owner.pid
        await _answer(addresses)


async def test_readers_without_an_owner_share_servers_that_run_until_the_last_has_read(
    data_directory: DataDirectory,
) -> None:
    second_reads = asyncio.Event()
    first_is_done = asyncio.Event()

    async def first() -> None:
        async with servers_for_reading(data_directory, "messages"):
            await second_reads.wait()
            first_is_done.set()

    async def second() -> Addresses:
        await _until_ready(data_directory)
        async with servers_for_reading(data_directory, "actions") as addresses:
            second_reads.set()
            await first_is_done.wait()
            await _wait_for(lambda: (owner := data_directory.owner()) is None or owner.addresses is None)
            await _answer(addresses)
        return addresses

    _, addresses = await asyncio.gather(first(), second())
    assert data_directory.owner() is None
    assert is_free(int(addresses.nats_url.rpartition(":")[2]))


async def test_an_owner_waits_for_a_reader_to_finish(data_directory: DataDirectory) -> None:
    async with servers_for_reading(data_directory, "messages"):
        coming = asyncio.create_task(data_directory.own("up"))
        await asyncio.wait([coming], timeout=0.1)
        assert not coming.done()
    ownership = await coming
    ownership.release()


async def test_a_server_that_dies_is_started_again_at_the_same_address(data_directory: DataDirectory) -> None:
    servers = Servers(data_directory, "up")
    async with servers as addresses:
        before = _running(servers)
        for process in before:
            os.kill(process.pid, signal.SIGKILL)
        await _wait_for(lambda: not any(process.alive for process in before))
        await _wait_for(lambda: all(process.alive for process in _running(servers)) and _running(servers) != before)
        await _until_both_answer(addresses)


async def _until_both_answer(addresses: Addresses) -> None:
    end = time.monotonic() + 15
    while True:
        try:
            return await _answer(addresses)
        except (OSError, nats.errors.Error, asyncpg.PostgresError):
            assert time.monotonic() < end
            await asyncio.sleep(0.05)


async def test_a_server_that_is_stopped_on_purpose_stays_down(data_directory: DataDirectory) -> None:
    servers = Servers(data_directory, "up")
    async with servers:
        assert servers.postgres is not None
        await servers.postgres.stop()
        await asyncio.sleep(1.2)  # longer than the pause between two looks at it
        assert not servers.postgres.alive


async def test_with_everything_given_the_directory_is_not_touched(
    tmp_path: Path, clean_nats: NatsUnderTest, database_url: str
) -> None:
    directory = DataDirectory(tmp_path / "none")
    given = Given(clean_nats.url, clean_nats.monitor_url, database_url)
    async with Servers(directory, "up", given) as addresses:
        assert addresses == Addresses(clean_nats.url, clean_nats.monitor_url, database_url)
        async with servers_for_reading(directory, "messages", given) as again:
            assert again == addresses
        async with Servers(directory, "serve walker", given):
            pass
    assert not directory.path.exists()


async def test_with_one_given_only_the_other_is_started(data_directory: DataDirectory, database_url: str) -> None:
    given = Given(database_url=database_url)
    servers = Servers(data_directory, "up", given)
    async with servers as addresses:
        assert servers.postgres is None
        assert addresses.database_url == database_url
        await _answer(addresses)
        assert _running(servers) == [servers.nats.process.identity if servers.nats and servers.nats.process else None]


async def test_a_reader_beside_a_given_nats_server_makes_no_database(tmp_path: Path, clean_nats: NatsUnderTest) -> None:
    """A look at a deployment leaves nothing behind on the machine that one looks from."""
    directory = DataDirectory(tmp_path / "none")
    given = Given(clean_nats.url, clean_nats.monitor_url)
    async with servers_for_reading(directory, "messages", given) as addresses:
        assert addresses == Addresses(clean_nats.url, clean_nats.monitor_url, None)
    assert not directory.path.exists()


async def test_a_reader_says_that_it_takes_the_databases_of_a_former_owner(
    data_directory: DataDirectory, clean_nats: NatsUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    """They may be those of another nats-server."""
    given = Given(clean_nats.url, clean_nats.monitor_url)
    async with Servers(data_directory, "up", given) as owners:
        pass
    async with servers_for_reading(data_directory, "messages", given) as addresses:
        assert addresses.database_url == owners.database_url
    assert "database_of_directory" in {getattr(record, "action", "") for record in caplog.records}


async def test_a_given_address_outranks_the_owners(data_directory: DataDirectory, database_url: str) -> None:
    async with Servers(data_directory, "up") as owners:
        async with servers_for_reading(data_directory, "messages", Given(database_url=database_url)) as addresses:
            assert addresses == msgspec.structs.replace(owners, database_url=database_url)


async def test_a_failed_start_ends_the_other_server_and_gives_the_directory_back() -> None:
    async with directory_for_tests() as directory:
        directory.nats_folder.mkdir()
        (directory.nats_folder / "jetstream").write_text("a file where a folder has to be")
        servers = Servers(directory, "up")
        with pytest.raises(ServerStartFailed, match="nats-server did not start"):
            async with servers:
                pass
        assert not any(process.alive for process in _running(servers))
        ownership = await directory.own("run")
        ownership.release()


async def test_an_owner_file_that_outlived_its_process_says_nothing(tmp_path: Path) -> None:
    """Also when its pid belongs to another process by now."""
    data_directory = DataDirectory(tmp_path)
    stale = Owner(ProcessId(os.getpid(), "another boot:1"), "up", False, Addresses("nats://127.0.0.1:1"))
    data_directory.write_owner(stale)
    assert data_directory.owner() is None
    async with data_directory.borrowed() as addresses:
        assert addresses is None
    (data_directory.path / "owner.json").write_text("{")
    assert data_directory.owner() is None


def test_the_directory_is_the_argument_else_the_variable_else_the_default(tmp_path: Path) -> None:
    environ = {"WAYBOOK_DATA_DIR": "/from/variable", "XDG_STATE_HOME": "/state"}
    assert DataDirectory.resolve(tmp_path, environ).path == tmp_path
    assert DataDirectory.resolve("relative", environ).path == Path.cwd() / "relative"
    assert DataDirectory.resolve(None, environ).path == Path("/from/variable")
    default = "/var/lib/waybook" if os.geteuid() == 0 else "/state/waybook"
    assert DataDirectory.resolve(None, {"XDG_STATE_HOME": "/state"}).path == Path(default)


async def test_a_directory_that_cannot_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataDirectoryUnusable, match=f"{path} .*--data-dir or WAYBOOK_DATA_DIR"):
            async with Servers(DataDirectory(path), "up"):
                pass
