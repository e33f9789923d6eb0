"""The servers of one installation: those that are given, and for the rest embedded ones."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType

import msgspec

from waybook.adapters.embedded.data_directory import Addresses, DataDirectory, Ownership
from waybook.adapters.embedded.errors import DataDirectoryInUse
from waybook.adapters.embedded.given import check_database, check_nats
from waybook.adapters.embedded.nats_server import NatsServer
from waybook.adapters.embedded.postgres import Postgres
from waybook.adapters.embedded.server import EmbeddedServer
from waybook.events.ending import end
from waybook.events.errors import WaybookError

_log = logging.getLogger(__name__)
_WATCH_S = 0.5
_LONGEST_PAUSE_S = 30.0
_READER_PATIENCE_S = 15.0


class Given(msgspec.Struct, frozen=True):
    """Addresses of real servers (WAYBOOK_NATS_URL and its like); None is embedded."""

    nats_url: str | None = None
    nats_monitor_url: str | None = None
    database_url: str | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be embedded."""
        return self.nats_url is not None and self.database_url is not None


class Servers:
    """The servers for the time of the block, for `up`, `run` and `serve`.

    What is not given is started in the data directory, which is owned meanwhile; with everything given the directory
    is not touched. An embedded server that dies is started again under the same address. `sync_always=False` and
    `max_store_bytes` are those of NatsServer. Entering raises DataDirectoryInUse, DataDirectoryUnusable,
    ServerStartFailed, ProgramMissing, ServerUnreachable, ServerTooOld, ServerUnsuitable.
    """

    def __init__(
        self,
        directory: DataDirectory,
        role: str,
        given: Given | None = None,
        *,
        reading: bool = False,
        sync_always: bool = True,
        max_store_bytes: int | None = None,
    ) -> None:
        self.directory = directory
        self.role = role
        self.given = given or Given()
        self.nats: NatsServer | None = None
        self.postgres: Postgres | None = None
        self._reading = reading
        if self.given.nats_url is None:
            self.nats = NatsServer(directory.nats_folder, sync_always=sync_always, max_store_bytes=max_store_bytes)
        if self.given.database_url is None:
            self.postgres = Postgres(directory.postgres_folder)
        self._ownership: Ownership | None = None
        self._watchers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Addresses:
        if not self.given.complete:
            self._ownership = await self.directory.own(self.role, reading=self._reading)
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        addresses = self._addresses()
        if self._ownership:
            self._ownership.publish(addresses)
        self._watchers = [asyncio.create_task(_watch(server)) for server in self._embedded()]
        return addresses

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ownership:
            await self._ownership.withdraw()
        await self._stop()

    def _embedded(self) -> list[EmbeddedServer]:
        return [server for server in (self.nats, self.postgres) if server is not None]

    async def _start(self) -> None:
        checks: list[Callable[[], Coroutine[None, None, object]]] = [server.start for server in self._embedded()]
        if nats_url := self.given.nats_url:
            checks.append(lambda: check_nats(nats_url))
        if database_url := self.given.database_url:
            checks.append(lambda: check_database(database_url))
        await _all(checks)

    async def _stop(self) -> None:
        await end(self._watchers)
        self._watchers = []
        try:
            await _all([server.stop for server in self._embedded()])
        finally:
            if self._ownership:
                self._ownership.release()
                self._ownership = None

    def _addresses(self) -> Addresses:
        monitor = self.nats.monitor_url if self.nats else self.given.nats_monitor_url
        return Addresses(
            nats_url=self.nats.url if self.nats else self.given.nats_url or "",
            nats_monitor_url=monitor,
            database_url=self.postgres.url if self.postgres else self.given.database_url,
        )


@asynccontextmanager
async def servers_for_reading(
    directory: DataDirectory, role: str, given: Given | None = None
) -> AsyncIterator[Addresses]:
    """The servers for a command that only reads, beside a running owner or without one.

    What is not given comes from the living owner; without one the servers are started for the time of the block. But
    where a nats-server is given, no PostgreSQL is made in a directory that has none: there is no database then.
    Raises what entering `Servers` raises.
    """
    async with AsyncExitStack() as stack:
        yield await _borrow_or_start(stack, directory, role, given or Given())


async def _borrow_or_start(stack: AsyncExitStack, directory: DataDirectory, role: str, given: Given) -> Addresses:
    end = time.monotonic() + _READER_PATIENCE_S
    while True:
        if not given.complete:
            borrowed = await stack.enter_async_context(directory.borrowed())
            if borrowed is not None:
                return _merged(given, borrowed)
        if given.nats_url is not None and given.database_url is None and not _has_database(directory):
            await check_nats(given.nats_url)
            return Addresses(given.nats_url, given.nats_monitor_url)
        try:
            return await stack.enter_async_context(Servers(directory, role, given, reading=True))
        except DataDirectoryInUse:  # somebody was faster: use theirs
            if time.monotonic() >= end:
                raise


def _has_database(directory: DataDirectory) -> bool:
    """Whether an owner kept read models there; said, since they may be those of another nats-server."""
    found = Postgres(directory.postgres_folder).is_made
    if found:
        fields = {"action": "database_of_directory", "directory": str(directory.path)}
        _log.warning("read models are taken from %s; WAYBOOK_DATABASE_URL names others", directory.path, extra=fields)
    return found


def _merged(given: Given, addresses: Addresses) -> Addresses:
    return Addresses(
        nats_url=given.nats_url or addresses.nats_url,
        nats_monitor_url=given.nats_monitor_url if given.nats_url else addresses.nats_monitor_url,
        database_url=given.database_url or addresses.database_url,
    )


async def _all(actions: Sequence[Callable[[], Coroutine[None, None, object]]]) -> None:
    """All at once; when one fails, the others are cancelled and its error is raised."""
    tasks = [asyncio.create_task(action()) for action in actions]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        await end(tasks)
        raise


async def _watch(server: EmbeddedServer) -> None:
    """Starts the server again whenever it dies unasked, with growing pauses while that fails."""
    pause = _WATCH_S
    while True:
        await asyncio.sleep(pause)
        if server.alive or not server.wanted:
            continue
        fields = {"action": "server_died", "server": server.name}
        _log.error("%s died; starting it again", server.name, extra=fields)
        try:
            await server.start()
            pause = _WATCH_S
        except WaybookError:
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            _log.exception("%s did not start again; next try in %g s", server.name, pause, extra=fields)
