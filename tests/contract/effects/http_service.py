"""An HTTP service that keeps what it is sent, and fails in the ways that services fail."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

Fault = Literal["none", "drop_before", "drop_after", "late", "500_after", "429", "400", "down"]


class HttpService:
    """`kept` holds the bodies that were stored, by key. One that honours keys stores nothing twice.

    `fault` is for the next request, `busy` (a status) for all of them.
    """

    def __init__(self, *, honours_keys: bool = False) -> None:
        self.kept: list[tuple[str, str]] = []
        self.requests: list[tuple[str, str, str]] = []
        self.fault: Fault = "none"
        self.answering = True
        self.honours_keys = honours_keys
        self.url = ""
        self.late_s = 0.3
        self.busy = 0

    def _of(self, key: str) -> list[str]:
        return [body for known, body in self.kept if known == key]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
            body = (await reader.readexactly(int(headers.get("content-length", 0)))).decode()
            method, path, _ = first.split()
            self.requests.append((method, path, headers.get("idempotency-key", "")))
            answer = await self._answer(method, path, headers.get("idempotency-key", ""), body)
            if answer is None:
                writer.transport.abort()
                return
            status, text, extra = answer
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(text)}\r\n{extra}\r\n{text}".encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, method: str, path: str, key: str, body: str) -> tuple[int, str, str] | None:
        if method == "GET":
            if not self.answering:
                return 503, "", ""
            found = self._of(path.rpartition("/")[2])
            return (200, json.dumps({"found": found}), "") if found else (404, "{}", "")
        if method == "DELETE":
            gone = self._of(path.rpartition("/")[2])
            self.kept = [one for one in self.kept if one[0] != path.rpartition("/")[2]]
            return (204, "", "") if gone else (404, "", "")
        if self.busy:
            return self.busy, "busy", "Retry-After: 1\r\n"
        fault, self.fault = self.fault, "none"
        if fault == "drop_before":
            return None
        if fault in ("429", "400"):
            return int(fault), "no", "Retry-After: 7\r\n"
        if not (self.honours_keys and self._of(key)):
            self.kept.append((key, body))
        if fault == "drop_after":
            return None
        if fault == "late":
            await asyncio.sleep(self.late_s)
        if fault == "500_after":
            return 500, "oops", ""
        return 201, json.dumps({"id": len(self.kept)}), "Content-Type: application/json\r\n"


@asynccontextmanager
async def http_service(service: HttpService, port: int = 0) -> AsyncIterator[HttpService]:
    """Serves on a free port of loopback for the time of the block."""
    server = await asyncio.start_server(service.serve, "127.0.0.1", port)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        service.url = f"http://{host}:{port}"
        yield service
