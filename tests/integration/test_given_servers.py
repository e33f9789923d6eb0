"""Servers that are given by their address: what is wrong with them is said at once, with the way out."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import pytest

from waybook.adapters.embedded import (
    DataDirectory,
    Given,
    Servers,
    ServerTooOld,
    ServerUnreachable,
    ServerUnsuitable,
    read_monitor,
)
from waybook.adapters.embedded.free_port import free_port
from waybook.adapters.embedded.given import check_database, check_nats
from waybook.testing.servers import NatsUnderTest


@asynccontextmanager
async def _greeting(line: bytes) -> AsyncIterator[str]:
    """A server that says one line to whoever connects; its address without scheme."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(line)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_good_nats_server_is_accepted(nats_server: NatsUnderTest) -> None:
    info = await check_nats(nats_server.url)
    assert info is not None
    assert info.jetstream


async def test_one_answering_server_of_a_list_is_enough(nats_server: NatsUnderTest) -> None:
    assert await check_nats(f"nats://127.0.0.1:{free_port()}, {nats_server.url}")


async def test_a_nats_server_that_is_away_is_named() -> None:
    url = f"nats://127.0.0.1:{free_port()}"
    with pytest.raises(ServerUnreachable, match=rf"answers at {url} .*WAYBOOK_NATS_URL"):
        await check_nats(url)


async def test_a_silent_server_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(ServerUnreachable, match="no answer in time"):
            await check_nats(f"nats://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)


@pytest.mark.parametrize("url", ["http://127.0.0.1:4222", "nats://", "nats://127.0.0.1:port", "nats://127.0.0.1:99999"])
async def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(ServerUnreachable, match=url):
        await check_nats(url)


async def test_something_else_than_a_nats_server_is_told_apart() -> None:
    async with _greeting(b"220 mail.example.org ESMTP\r\n") as place:
        with pytest.raises(ServerUnreachable, match="no nats-server"):
            await check_nats(f"nats://{place}")


async def test_a_nats_server_that_is_too_old_is_refused_with_both_versions() -> None:
    async with _greeting(b'INFO {"version": "2.10.29", "jetstream": true}\r\n') as place:
        with pytest.raises(ServerTooOld, match=rf"{place} is version 2\.10\.29, Waybook needs 2\.15\.1 or newer"):
            await check_nats(f"nats://{place}")


async def test_a_nats_server_without_jetstream_is_refused() -> None:
    async with _greeting(b'INFO {"version": "2.15.1"}\r\n') as place:
        with pytest.raises(ServerUnsuitable, match="without JetStream"):
            await check_nats(f"nats://{place}")


async def test_a_password_does_not_show_in_a_message() -> None:
    with pytest.raises(ServerUnreachable) as nats_error:
        await check_nats(f"nats://me:secret@127.0.0.1:{free_port()}")
    with pytest.raises(ServerUnreachable) as database_error:
        await check_database(f"postgresql://me:secret@127.0.0.1:{free_port()}/x")
    assert "secret" not in f"{nats_error.value} {database_error.value}"


async def test_a_good_database_is_accepted(database_url: str) -> None:
    await check_database(database_url)


async def test_a_database_that_does_not_exist_is_named_with_the_way_out(database_url: str) -> None:
    missing = urlunsplit(urlsplit(database_url)._replace(path="/nowhere"))
    with pytest.raises(ServerUnsuitable, match=r"has no database nowhere; make it with `createdb nowhere`"):
        await check_database(missing)


async def test_a_database_server_that_is_away_is_named() -> None:
    with pytest.raises(ServerUnreachable, match="WAYBOOK_DATABASE_URL"):
        await check_database(f"postgresql://127.0.0.1:{free_port()}/x")


@pytest.mark.parametrize("url", ["mysql://127.0.0.1/x", "not an address", "postgresql://127.0.0.1:port/x"])
async def test_a_database_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises((ServerUnreachable, ServerUnsuitable), match="WAYBOOK_DATABASE_URL"):
        await check_database(url)


async def test_a_monitoring_address_that_is_wrong_is_named(nats_server: NatsUnderTest) -> None:
    for url in (f"http://127.0.0.1:{free_port()}", nats_server.url, nats_server.url.replace("nats:", "http:")):
        with pytest.raises(ServerUnreachable, match="WAYBOOK_NATS_MONITOR_URL"):
            await read_monitor(url, "varz", timeout_s=0.5)


async def test_a_wrong_address_ends_what_was_started_beside_it(data_directory: DataDirectory) -> None:
    servers = Servers(data_directory, "up", Given(nats_url=f"nats://127.0.0.1:{free_port()}"))
    with pytest.raises(ServerUnreachable):
        async with servers:
            pass
    assert servers.postgres is not None
    assert not servers.postgres.alive
    assert data_directory.owner() is None
