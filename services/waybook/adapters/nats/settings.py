"""How to reach a nats-server."""

import ssl
from pathlib import Path

import msgspec


class NatsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the nats-server is and who we are. Times in seconds.

    `servers` are URLs (`nats://host:port`, `tls://host:port`); user and password may stand in them. `inbox_prefix`
    is the prefix of reply subjects that this user may subscribe to. `request_timeout_s` is how long an answer may
    take before its outcome counts as unknown. A server that does not answer pings for two to three
    `ping_interval_s` counts as gone. `reconnect_wait_s` is the longest pause between two tries to connect.
    """

    servers: tuple[str, ...]
    name: str = "waybook"
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials: Path | None = None
    nkey_seed: Path | None = None
    tls: ssl.SSLContext | None = None
    inbox_prefix: str = "_INBOX"
    connect_timeout_s: float = 2.0
    request_timeout_s: float = 5.0
    ping_interval_s: float = 5.0
    reconnect_wait_s: float = 1.0
