"""The monitoring address of a nats-server: a few reads over plain HTTP, without a client library."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import msgspec

from waybook.adapters.embedded.errors import ServerUnreachable

_LIMIT = 16 * 1024 * 1024


async def read_monitor(url: str, page: str, *, timeout_s: float = 2.0) -> dict[str, Any]:
    """A page (`varz`, `healthz`, `jsz`) of the monitoring address `url` ("http://127.0.0.1:8222"), decoded.

    The answer's status is not judged: an unhealthy server answers healthz with 503 and a reason. Raises
    ServerUnreachable when nothing answers in `timeout_s` seconds, or what answers is no nats-server.
    """
    parts = urlsplit(url)
    try:
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it does not look like http://HOST:PORT")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(timeout_s):
            body = await _get(parts.hostname, port, f"{parts.path.rstrip('/')}/{page}", parts.scheme == "https")
        answer: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, msgspec.DecodeError) as error:
        raise ServerUnreachable(
            f"no nats-server answers at the monitoring address {url} ({error or 'no answer in time'}); "
            "see WAYBOOK_NATS_MONITOR_URL"
        ) from error
    return answer


async def _get(host: str, port: int, path: str, tls: bool) -> bytes:
    """HTTP/1.0, so that the body ends where the connection does."""
    reader, writer = await asyncio.open_connection(host, port, ssl=tls or None)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = await _read_all(reader)
    finally:
        writer.close()
    return answer.partition(b"\r\n\r\n")[2]


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await reader.read(65_536):
        parts.append(chunk)
        size += len(chunk)
        if size > _LIMIT:
            raise ValueError("the answer is too long")
    return b"".join(parts)
