"""A connection to the NATS server that a command works with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import msgspec
import nats
import nats.errors
from nats.aio.client import Client

from waybook.adapters.embedded.data_directory import Addresses, DataDirectory
from waybook.adapters.embedded.given import check_nats
from waybook.adapters.embedded.servers import servers_for_reading
from waybook.engine.ports import PortMisconfigured, PortUnavailable
from waybook.services.bootstrap.settings import Settings

TIMEOUT_S = 5


class Target(msgspec.Struct, frozen=True):
    """Which server: the one at `nats_url`, else that of `directory`. It answers us under `inbox_prefix`."""

    directory: DataDirectory
    nats_url: str | None = None
    monitor_url: str | None = None
    inbox_prefix: str = "_INBOX"

    @classmethod
    def chosen(cls, nats_url: str | None, monitor_url: str | None, data_dir: Path | None) -> Self:
        """What the options say, else what is configured. Raises InvalidInput, DataDirectoryUnusable."""
        settings = Settings.load()
        monitor = monitor_url or (settings.nats_monitor_url if nats_url in (None, settings.nats_url) else None)
        directory = settings.directory(data_dir)
        return cls(directory, nats_url or settings.nats_url, monitor, settings.nats_inbox_prefix)


@asynccontextmanager
async def nats_addresses(target: Target, role: str) -> AsyncIterator[Addresses]:
    """The server's addresses for the time of the block.

    Without an address: the running owner's of the data directory, else servers started for the time of the block.
    Raises ServerUnreachable, ServerTooOld, ServerUnsuitable, and what starting servers raises.
    """
    if target.nats_url is not None:
        await check_nats(target.nats_url)
        yield Addresses(nats_url=target.nats_url, nats_monitor_url=target.monitor_url)
        return
    async with servers_for_reading(target.directory, role) as addresses:
        yield addresses


@asynccontextmanager
async def connected(addresses: Addresses, inbox_prefix: str = "_INBOX") -> AsyncIterator[Client]:
    """A connection for the time of the block. Raises PortUnavailable, PortMisconfigured (credentials)."""
    try:
        client = await nats.connect(
            addresses.nats_url.split(","),
            allow_reconnect=False,
            connect_timeout=TIMEOUT_S,
            error_cb=_ignore,
            inbox_prefix=inbox_prefix,
        )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        if "authorization" in str(error).lower():
            raise PortMisconfigured(
                "the nats-server refuses the credentials; name them in the address: nats://USER:PASSWORD@HOST:PORT"
            ) from error
        raise PortUnavailable(f"no connection to the nats-server: {error or type(error).__name__}") from error
    try:
        yield client
    finally:
        await client.close()


async def _ignore(error: Exception) -> None:
    """The client library says here what it also raises."""
