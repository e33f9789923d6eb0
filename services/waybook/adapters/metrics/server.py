"""`/metrics` over HTTP, on the event loop of the process that it tells of.

The loop's own numbers are read without a lock there, and a loop that stands still does not answer, which is what its
operator has to learn.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waybook.adapters.metrics.exposition import Exposition
from waybook.events.ending import end

log = logging.getLogger(__name__)

PATH = "/metrics"
PATIENCE_S = 10.0
"""How long a client may take over its request or over reading the answer."""

MOST_HEAD_BYTES = 16 * 1024
_PLAIN = "text/plain; charset=utf-8"


@asynccontextmanager
async def metrics_server(listening: socket.socket, exposition: Exposition) -> AsyncIterator[None]:
    """Answers on `listening`, a socket of the caller's that stays open, for the time of the block."""
    answers = _Answers(exposition)
    server = await asyncio.start_server(answers, sock=listening.dup(), limit=MOST_HEAD_BYTES)
    try:
        yield
    finally:
        server.close()
        await answers.end()


class _Answers:
    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition
        self._open: set[asyncio.Task[None]] = set()

    async def end(self) -> None:
        """Hangs up on everybody."""
        await end(self._open)

    def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(head.decode("latin-1")))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("a reader of metrics went away: %s", error, extra={"action": "metrics_reader_lost"})
        finally:
            writer.close()

    async def _answer(self, head: str) -> bytes:
        first, *lines = head.splitlines()
        method, _, rest = first.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in ("GET", "HEAD"):
            return _response("405 Method Not Allowed", b"only GET and HEAD\n", _PLAIN)
        if path != PATH:
            return _response("404 Not Found", f"there is {PATH} only\n".encode(), _PLAIN, bodiless=method == "HEAD")
        body, content_type = await self._exposition.render(_header(lines, "accept"))
        return _response("200 OK", body, content_type, bodiless=method == "HEAD")


def _header(lines: list[str], name: str) -> str:
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() == name:
            return value.strip()
    return ""


def _response(status: str, body: bytes, content_type: str, *, bodiless: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if bodiless else body)
