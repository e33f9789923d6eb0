"""pytest fixtures of the servers in `waybook.testing.servers`.

Put `pytest_plugins = ["waybook.testing.pytest_plugin"]` into your conftest.py. The session's servers start when the
first test asks for them, in well under a second (nats-server) or about two (PostgreSQL).
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.testing import servers
from waybook.testing.servers import NatsUnderTest, ServerUnderTest


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsUnderTest]:
    """The session's nats-server. Tests share it: leave it running, and ask for `clean_nats` to have it empty."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        yield runner.run(stack.enter_async_context(servers.shared_nats()))
        runner.run(stack.aclose())


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[Path]:
    """What `own_postgres` and `data_directory` copy instead of making it anew."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        yield runner.run(stack.enter_async_context(servers.postgres_template()))
        runner.run(stack.aclose())


@pytest.fixture(scope="session")
def postgres() -> Iterator[ServerUnderTest]:
    """The session's PostgreSQL. Ask for `database_url` to have a database of your own."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        yield runner.run(stack.enter_async_context(servers.shared_postgres()))
        runner.run(stack.aclose())


@pytest_asyncio.fixture
async def clean_nats(nats_server: NatsUnderTest) -> NatsUnderTest:
    """The session's nats-server, running and without a stream."""
    await nats_server.start()
    await servers.clear_streams(nats_server.url)
    return nats_server


@pytest_asyncio.fixture
async def own_nats() -> AsyncIterator[NatsUnderTest]:
    """A nats-server of this test's own, for tests that stop, kill or fill it."""
    async with servers.nats_for_tests() as server:
        yield server


@pytest_asyncio.fixture
async def own_postgres(postgres_template: Path) -> AsyncIterator[ServerUnderTest]:
    """A PostgreSQL of this test's own, for tests that stop or kill it."""
    async with servers.postgres_for_tests(postgres_template) as server:
        yield server


@pytest_asyncio.fixture
async def database_url(postgres: ServerUnderTest) -> AsyncIterator[str]:
    """The address of an empty database of this test's own on the session's PostgreSQL."""
    await postgres.start()
    async with servers.fresh_database(postgres.url) as url:
        yield url


@pytest_asyncio.fixture
async def data_directory(postgres_template: Path) -> AsyncIterator[DataDirectory]:
    """A data directory in which PostgreSQL can run also for root, which it cannot in `tmp_path`.

    Servers that a killed process left running in it are stopped afterwards.
    """
    async with servers.directory_for_tests(postgres_template) as directory:
        yield directory


@pytest.fixture
def reachable_folder() -> Iterator[Path]:
    """A temporary folder for a data directory: like `tmp_path`, but PostgreSQL can run in it also for root."""
    folder = servers.reachable_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
