"""Servers for tests, in the one place that decides where they come from.

Plain functions for any test runner; `waybook.testing.pytest_plugin` makes pytest fixtures of them. Everything here is
bound to no event loop: start a server in one and use it in the next.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import nats
from nats.js.errors import NotFoundError, ServiceUnavailableError

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.adapters.embedded.given import check_database, check_nats
from waybook.adapters.embedded.nats_server import NatsServer
from waybook.adapters.embedded.postgres import Postgres
from waybook.events.errors import TerminalError

if TYPE_CHECKING:
    from waybook.testing.nats_container import NatsContainer


class ServerUnderTest(Protocol):
    """A server under test, wherever it runs. Every restart keeps its address."""

    @property
    def url(self) -> str: ...

    async def start(self) -> None:
        """Returns when it answers; nothing happens when it runs."""
        ...

    async def stop(self) -> None:
        """An orderly shutdown."""
        ...

    async def kill(self) -> None:
        """Ends it as a crash would."""
        ...

    async def restart(self) -> None:
        """Starts it again after a stop or a kill, or stops it first."""
        ...

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing, until `resume`."""
        ...

    def resume(self) -> None:
        """SIGCONT."""
        ...


class NatsUnderTest(ServerUnderTest, Protocol):
    """A nats-server under test."""

    @property
    def monitor_url(self) -> str:
        """Empty where it is not known."""
        ...


class GivenServer:
    """A server that somebody else runs: it can be used, not stopped."""

    def __init__(self, url: str, monitor_url: str = "") -> None:
        self.url = url
        self.monitor_url = monitor_url

    async def start(self) -> None:
        """It runs already."""

    async def stop(self) -> None:
        raise NotOurs

    async def kill(self) -> None:
        raise NotOurs

    async def restart(self) -> None:
        raise NotOurs

    def pause(self) -> None:
        raise NotOurs

    def resume(self) -> None:
        raise NotOurs


class NotOurs(TerminalError):
    """A server given by its address is not ours to stop; ask for `own_nats` or `own_postgres` instead."""


class NoContainer(TerminalError):
    """WAYBOOK_TEST_IN_CONTAINERS is set, and no engine answers or it does not have the image; see `make test-containers`."""


def reachable_folder() -> Path:
    """A new temporary folder in which PostgreSQL can run also for root, which pytest's `tmp_path` is not."""
    folder = Path(tempfile.mkdtemp(prefix=f"waybook-test-{os.getpid()}-"))
    folder.chmod(0o711)
    return folder


@asynccontextmanager
async def shared_nats() -> AsyncIterator[NatsUnderTest]:
    """The server at WAYBOOK_TEST_NATS_URL, else one as `nats_for_tests` makes it.

    Tests delete all streams of that server, and none that stops it runs on it.
    """
    if url := os.environ.get("WAYBOOK_TEST_NATS_URL"):
        await check_nats(url)
        yield GivenServer(url, os.environ.get("WAYBOOK_TEST_NATS_MONITOR_URL", ""))
    else:
        async with nats_for_tests() as server:
            yield server


@asynccontextmanager
async def nats_for_tests(
    *, sync_always: bool = True, max_store_bytes: int | None = None
) -> AsyncIterator[NatsUnderTest]:
    """A nats-server of the test's own, empty at first and gone afterwards.

    It runs in a container where an engine answers and has the image (WAYBOOK_TEST_NATS_IMAGE, by default nats:2.15),
    else it is embedded. `sync_always` and `max_store_bytes` are those of NatsServer. Raises NoContainer instead of
    taking an embedded one when WAYBOOK_TEST_IN_CONTAINERS is set.
    """
    container = await asyncio.to_thread(_container, sync_always, max_store_bytes)
    if container is None and os.environ.get("WAYBOOK_TEST_IN_CONTAINERS"):
        raise NoContainer
    if container is not None:
        try:
            await container.start()
            yield container
        finally:
            await container.remove()
        return
    folder = reachable_folder()
    server = NatsServer(folder / "nats", sync_always=sync_always, max_store_bytes=max_store_bytes)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def postgres_template() -> AsyncIterator[Path]:
    """The folder of a PostgreSQL that never ran, to be copied: making one takes a second, copying it a tenth."""
    folder = reachable_folder()
    server = Postgres(folder / "postgres", durable=False)
    try:
        await server.start()
        await server.stop()
        yield server.folder
    finally:
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def shared_postgres() -> AsyncIterator[ServerUnderTest]:
    """The server at WAYBOOK_TEST_DATABASE_URL, whose user may make databases, else an embedded one."""
    if url := os.environ.get("WAYBOOK_TEST_DATABASE_URL"):
        await check_database(url)
        yield GivenServer(url)
    else:
        async with postgres_for_tests() as server:
            yield server


@asynccontextmanager
async def postgres_for_tests(template: Path | None = None) -> AsyncIterator[ServerUnderTest]:
    """A PostgreSQL of the test's own, gone afterwards. It survives a kill; only the machine must not crash.

    `template` is what `postgres_template` gives, and saves a second.
    """
    folder = reachable_folder()
    _copy_postgres(template, folder / "postgres")
    server = Postgres(folder / "postgres", durable=False)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def directory_for_tests(template: Path | None = None) -> AsyncIterator[DataDirectory]:
    """A new data directory; at the end servers that were left running in it are stopped, and it is removed.

    `template` is what `postgres_template` gives, and saves the first start a second.
    """
    directory = DataDirectory(reachable_folder())
    _copy_postgres(template, directory.postgres_folder)
    try:
        yield directory
    finally:
        await end_servers(directory)
        shutil.rmtree(directory.path, ignore_errors=True)


async def end_servers(directory: DataDirectory) -> None:
    """Stops the servers that a killed owner left running in the directory."""
    for server in (NatsServer(directory.nats_folder), Postgres(directory.postgres_folder)):
        await server.end_left_behind()


@asynccontextmanager
async def fresh_database(url: str) -> AsyncIterator[str]:
    """The address of a new, empty database on the server at `url`; dropped afterwards, whoever is connected."""
    name = f"waybook_test_{uuid4().hex[:12]}"
    await _execute(url, f"CREATE DATABASE {name} TEMPLATE template0")
    try:
        yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    finally:
        await _execute(url, f"DROP DATABASE {name} WITH (FORCE)")


async def clear_streams(url: str) -> None:
    """Deletes every stream of the server at `url`, and with them consumers, buckets and objects."""
    connection = await nats.connect(url, allow_reconnect=False)
    try:
        jetstream = connection.jetstream()
        try:
            while names := [info.config.name for info in await jetstream.streams_info()]:
                for name in names:
                    await jetstream.delete_stream(str(name))
        except (NotFoundError, ServiceUnavailableError):
            return
    finally:
        await connection.close()


def _copy_postgres(template: Path | None, target: Path) -> None:
    """Copies the data with its owner, who is not the own user for root."""
    if template is None:
        return
    target.mkdir(mode=0o700)
    shutil.copytree(template / "data", target / "data")
    owner = template.stat()
    if owner.st_uid != os.geteuid():
        for path in (target, *target.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)


def _container(sync_always: bool, max_store_bytes: int | None) -> "NatsContainer | None":
    try:
        from waybook.testing import nats_container
    except ImportError:  # testcontainers is not installed
        return None
    image = nats_container.image_name()
    if not nats_container.image_is_here(image):
        return None
    return nats_container.NatsContainer(image, sync_always=sync_always, max_store_bytes=max_store_bytes)


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
