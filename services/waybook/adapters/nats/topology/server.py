"""JetStream's management API, asked directly: client libraries drop settings that they do not know."""

import asyncio
import logging
from collections.abc import Sequence

import msgspec
import nats.errors
from nats.aio.client import Client

from waybook.adapters.embedded.server_version import check_server_version
from waybook.adapters.nats.errors import NO_CONSUMER, NO_STREAM, ApiError
from waybook.adapters.nats.topology.settings import Settings
from waybook.engine.ports import PortMisconfigured, PortUnavailable

_log = logging.getLogger(__name__)
API_LEVEL = "5"  # nats-server 2.15 (ADR-44): an older server refuses instead of leaving settings out
TIMEOUT_S = 5.0
_NOT_FOUND = NO_CONSUMER | NO_STREAM


class StreamState(msgspec.Struct, frozen=True):
    """What a stream holds."""

    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0
    num_deleted: int = 0
    lost: msgspec.Raw | None = None


class Peer(msgspec.Struct, frozen=True):
    """A server that holds a copy."""

    name: str


class Cluster(msgspec.Struct, frozen=True):
    """Where the copies of a stream are; server names."""

    leader: str = ""
    replicas: tuple[Peer, ...] = ()


class _Server(msgspec.Struct, frozen=True):
    id: str
    cluster: str = ""


class _UserInfo(msgspec.Struct, frozen=True):
    server: _Server | None = None


class Stored(msgspec.Struct, frozen=True):
    """A stream or a consumer as the server stores it."""

    config: Settings = {}
    state: StreamState = StreamState()
    cluster: Cluster = Cluster()
    paused: bool = False
    error: ApiError | None = None


def server_version(nc: Client) -> str:
    """Version of the server that `nc` is connected to. Raises PortUnavailable when it is not connected."""
    if not nc.is_connected:
        raise PortUnavailable("not connected to a NATS server")
    version = nc.connected_server_version
    return f"{version.major}.{version.minor}.{version.patch}" + (f"-{version.dev}" if version.dev else "")


def require_version(nc: Client) -> None:
    """Raises ServerTooOld, a PortMisconfigured, below the version that Waybook stands on."""
    check_server_version(server_version(nc))


async def only_server(nc: Client) -> str | None:
    """Id of the server that `nc` is connected to; None when it is one of a cluster or may not be asked."""
    try:
        answer = await nc.request("$SYS.REQ.USER.INFO", b"", timeout=TIMEOUT_S)
        server = msgspec.json.decode(answer.data, type=_UserInfo).server
    except (nats.errors.Error, msgspec.DecodeError) as error:
        _log.info("the server does not tell its id: %s", error, extra={"action": "server_id_unknown"})
        return None
    return None if server is None or server.cluster else server.id


async def request(nc: Client, call: str, body: object = None) -> Stored:
    """One API call, say `STREAM.INFO.COMMANDS`. An answer that something does not exist is returned, not raised.

    Raises PortUnavailable (no answer, no leader) and PortMisconfigured (refused, with the server's words).
    """
    payload = b"" if body is None else msgspec.json.encode(body)
    try:
        answer = await nc.request(
            f"$JS.API.{call}", payload, timeout=TIMEOUT_S, headers={"Nats-Required-Api-Level": API_LEVEL}
        )
    except nats.errors.NoRespondersError as error:
        raise PortUnavailable(f"{call}: JetStream is not enabled on the server, or has no leader") from error
    except nats.errors.Error as error:
        # The server says in passing that something is forbidden; what asked for it just gets no answer.
        if "permissions violation" in str(nc.last_error).lower():
            raise PortMisconfigured(f"{call}: {nc.last_error}") from error
        raise PortUnavailable(f"{call}: no answer from the NATS server ({type(error).__name__})") from error
    stored = msgspec.json.decode(answer.data, type=Stored)
    refusal = stored.error
    if refusal is None or refusal.err_code in _NOT_FOUND:
        return stored
    text = f"{call}: {refusal}"
    raise PortUnavailable(text) if refusal.code == 503 else PortMisconfigured(text)


async def stored_streams(nc: Client, names: Sequence[str]) -> dict[str, Stored | None]:
    """What the server stores under these names, asked side by side."""
    answers = await asyncio.gather(*(request(nc, f"STREAM.INFO.{name}") for name in names))
    return {name: None if answer.error else answer for name, answer in zip(names, answers, strict=True)}


async def stored_consumers(nc: Client, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Stored | None]:
    """The same for (stream, consumer)."""
    answers = await asyncio.gather(*(request(nc, f"CONSUMER.INFO.{stream}.{name}") for stream, name in names))
    return {name: None if answer.error else answer for name, answer in zip(names, answers, strict=True)}


async def put_stream(nc: Client, name: str, settings: Settings, *, exists: bool) -> None:
    """Creates or updates a stream."""
    await request(nc, f"STREAM.{'UPDATE' if exists else 'CREATE'}.{name}", {"name": name, **settings})


async def put_consumer(nc: Client, stream: str, name: str, settings: Settings, *, exists: bool) -> None:
    """Creates or updates a durable consumer."""
    config = {"name": name, "durable_name": name, **settings}
    subject = settings.get("filter_subject")
    call = f"CONSUMER.CREATE.{stream}.{name}" + (f".{subject}" if subject else "")
    action = "update" if exists else "create"
    stored = await request(nc, call, {"stream_name": stream, "config": config, "action": action})
    if stored.error:
        raise PortMisconfigured(f"{call}: {stored.error}")
