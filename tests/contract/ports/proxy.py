"""A wire between client and server that can be cut."""

import asyncio
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Forwards TCP from a port of its own to the server at `url`.

    `deaf` drops what the server answers: what clients send still arrives. `mute` drops what clients send. `cut`
    ends all connections.
    """

    def __init__(self, url: str) -> None:
        target = urlsplit(url)
        self._target = (target.hostname, target.port)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.deaf = False
        self.mute = False
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Ends all connections at once; new ones are taken."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, server_writer}
        for work in (self._copy(reader, server_writer, False), self._copy(server_reader, writer, True)):
            task = asyncio.get_running_loop().create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not (self.deaf if answers else self.mute):
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()
