"""`/metrics` over HTTP: what it answers, and that nobody who reads it slowly or badly disturbs the rest."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from prometheus_client.metrics_core import Metric

from waybook.adapters.metrics import server
from waybook.adapters.metrics.exposition import Exposition
from waybook.adapters.metrics.listening import MetricsAddressUnusable, address, listening
from waybook.adapters.metrics.server import metrics_server
from waybook.adapters.metrics.source import gauge


class One:
    """A source with one number."""

    async def families(self) -> Iterable[Metric]:
        return [gauge("waybook_one", "One.", 1)]


@asynccontextmanager
async def answering() -> AsyncIterator[int]:
    """The port of a server of the test's own."""
    with listening(0) as opened:
        async with metrics_server(opened, Exposition([One()])):
            yield opened.getsockname()[1]


async def ask(port: int, request: bytes) -> tuple[str, str]:
    """Status and body of the answer; both empty when the server hangs up instead."""
    async with connected(port) as (reader, writer):
        writer.write(request)
        head, _, body = (await until_hung_up(reader)).decode().partition("\r\n\r\n")
    return head.partition("\r\n")[0].partition(" ")[2], body


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def until_hung_up(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), 5)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        ("GET /metrics HTTP/1.1", "200 OK", "waybook_one 1.0"),
        ("GET /metrics?name=x HTTP/1.1", "200 OK", "waybook_one 1.0"),
        ("HEAD /metrics HTTP/1.1", "200 OK", ""),
        ("GET / HTTP/1.1", "404 Not Found", "/metrics"),
        ("HEAD / HTTP/1.1", "404 Not Found", ""),
        ("POST /metrics HTTP/1.1", "405 Method Not Allowed", "GET"),
        ("nonsense", "405 Method Not Allowed", "GET"),
    ],
)
async def test_it_answers_get_and_head_of_one_page(request_line: str, status: str, body: str) -> None:
    async with answering() as port:
        answered, text = await ask(port, f"{request_line}\r\nHost: x\r\nAccept: text/plain\r\n\r\n".encode())
    assert answered == status
    assert body in text if body else not text


async def test_a_reader_that_never_finishes_is_dropped_and_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a request, an endless one, and a hang-up cost nobody else an answer."""
    monkeypatch.setattr(server, "PATIENCE_S", 0.2)
    async with answering() as port:
        async with connected(port) as (reader, writer):
            writer.write(b"GET /metrics HTTP/1.1\r\n")
            assert (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == "200 OK"
            assert (await ask(port, b"x" * 200_000)) == ("", "")
            assert await until_hung_up(reader) == b""


async def test_the_end_hangs_up_on_who_is_still_there() -> None:
    async with AsyncExitStack() as stack:
        async with answering() as port:
            reader, writer = await stack.enter_async_context(connected(port))
            writer.write(b"GET /met")
            assert (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == "200 OK"
        assert await until_hung_up(reader) == b""


async def test_the_socket_outlives_the_server() -> None:
    """A service that is started again answers at the same address."""
    with listening(0) as opened:
        port = opened.getsockname()[1]
        for _ in range(2):
            async with metrics_server(opened, Exposition([One()])):
                assert (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == "200 OK"


def test_a_port_that_is_taken_is_named_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MetricsAddressUnusable, match=rf"127\.0\.0\.1:{port} .*--metrics-port"):
            with listening(port):
                pass


def test_a_host_that_is_none_of_ours_is_named() -> None:
    with pytest.raises(MetricsAddressUnusable, match=r"192\.0\.2\.1:0"):
        with listening(0, "192.0.2.1"):
            pass


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    with listening(0) as opened:
        assert opened.getsockname()[0] == "127.0.0.1"
        assert address(opened) == f"http://127.0.0.1:{opened.getsockname()[1]}/metrics"
    with listening(0, "::1") as opened:
        assert address(opened).startswith("http://[::1]:")
