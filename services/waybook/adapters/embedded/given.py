"""Servers that are given by their address: they are looked at once, before anything is built on them."""

import asyncio
import ssl
from urllib.parse import urlsplit

import msgspec

from waybook.adapters.embedded.errors import ProgramMissing, ServerUnreachable, ServerUnsuitable
from waybook.adapters.embedded.server_version import check_server_version

_OLDEST_POSTGRES = 140_000


class ServerInfo(msgspec.Struct, frozen=True):
    """What a nats-server says of itself before anybody has logged in."""

    version: str = ""
    jetstream: bool = False
    max_payload: int = 0


async def check_nats(urls: str, *, timeout_s: float = 5.0) -> ServerInfo | None:
    """Looks at the first server of the comma-separated `urls` that answers; waits `timeout_s` seconds for each.

    None: it answers only inside TLS or a WebSocket, and cannot be looked at from outside. Raises ServerUnreachable,
    ServerTooOld, ServerUnsuitable (no JetStream).
    """
    failures: list[str] = []
    for url in (part.strip() for part in urls.split(",")):
        try:
            return await _look_at(url, timeout_s)
        except (OSError, TimeoutError, ValueError, msgspec.DecodeError, asyncio.IncompleteReadError) as error:
            failures.append(f"{without_password(url)} ({str(error) or 'no answer in time'})")
    raise ServerUnreachable(
        f"no nats-server answers at {', '.join(failures)}; correct WAYBOOK_NATS_URL, start that server, "
        "or unset WAYBOOK_NATS_URL to let Waybook start its own"
    )


async def _look_at(url: str, timeout_s: float) -> ServerInfo | None:
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    if parts.scheme in ("ws", "wss"):
        return None
    if parts.scheme not in ("nats", "tls") or not parts.hostname:
        raise ValueError("it does not look like nats://HOST:PORT")
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 4222)
        try:
            first = await reader.readuntil(b"\r\n")
        finally:
            writer.close()
    if not first.startswith(b"INFO "):
        raise ValueError("what answers there is no nats-server")
    info = msgspec.json.decode(first[5:], type=ServerInfo)
    check_server_version(info.version, where=f"the nats-server at {without_password(url)}")
    if not info.jetstream:
        raise ServerUnsuitable(
            f"the nats-server at {without_password(url)} runs without JetStream; start it with `-js`, "
            "or with a `jetstream` block in its configuration"
        )
    return info


async def check_database(url: str, *, timeout_s: float = 10.0) -> None:
    """Connects once. Raises ServerUnreachable, ServerUnsuitable (no such database, wrong password, below 14)."""
    try:
        import asyncpg
    except ImportError as error:
        raise ProgramMissing("PostgreSQL needs asyncpg: `pip install waybook[postgres]`") from error
    place = without_password(url)
    try:
        connection = await asyncpg.connect(url, timeout=timeout_s)
    except asyncpg.InvalidCatalogNameError as error:
        name = urlsplit(url).path.lstrip("/")
        raise ServerUnsuitable(
            f"the server at {place} has no database {name}; make it with `createdb {name}`, or correct "
            "WAYBOOK_DATABASE_URL"
        ) from error
    except asyncpg.PostgresError as error:
        raise ServerUnsuitable(f"PostgreSQL at {place} refuses: {error}; correct WAYBOOK_DATABASE_URL") from error
    except (OSError, TimeoutError, ssl.SSLError, ValueError, asyncpg.InterfaceError) as error:
        raise ServerUnreachable(
            f"no PostgreSQL answers at {place} ({str(error) or 'no answer in time'}); correct WAYBOOK_DATABASE_URL, "
            "start that server, or unset WAYBOOK_DATABASE_URL to let Waybook start its own"
        ) from error
    try:
        version = int(await connection.fetchval("SELECT current_setting('server_version_num')::int"))
    finally:
        await connection.close()
    if version < _OLDEST_POSTGRES:
        raise ServerUnsuitable(f"PostgreSQL at {place} is version {version // 10_000}, Waybook needs 14 or newer")


def without_password(url: str) -> str:
    """The address, or several separated by commas, as it may stand in a message."""
    return ",".join(_masked(part) for part in url.split(","))


def _masked(url: str) -> str:
    try:
        password = urlsplit(url).password
    except ValueError:
        return url
    return url if password is None else url.replace(f":{password}@", ":***@", 1)
