"""Proof that a server syncs to disk before it acknowledges. Only the monitoring address tells."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Collection
from typing import Literal

import msgspec

TIMEOUT_S = 3.0


class SyncProof(msgspec.Struct, frozen=True):
    """`proven`: every server that holds copies syncs always; `refuted`: one does not; `unproven`: nobody could tell."""

    verdict: Literal["proven", "refuted", "unproven"]
    detail: str


class _Config(msgspec.Struct):
    sync_always: bool = False  # the server leaves it out when it is off


class _JetStream(msgspec.Struct):
    config: _Config | None = None


class _Varz(msgspec.Struct):
    server_name: str
    jetstream: _JetStream = msgspec.field(default_factory=_JetStream)


class _Unreadable(Exception):
    """The monitoring address did not tell."""


async def prove_sync(monitor_url: str | None, servers: Collection[str]) -> SyncProof:
    """Asks the monitoring addresses (`monitor_url`, several separated by commas) of all `servers` (their names).

    Without an address, or when a server in `servers` is not among those that answer, it is unproven.
    """
    urls = [url.strip() for url in (monitor_url or "").split(",") if url.strip()]
    if not urls:
        return SyncProof("unproven", "no monitoring address; set WAYBOOK_NATS_MONITOR_URL or --monitor-url")
    try:
        answers = await asyncio.gather(*(asyncio.to_thread(_varz, url) for url in urls))
    except _Unreadable as error:
        return SyncProof("unproven", str(error))
    for url, varz in zip(urls, answers, strict=True):
        if varz.jetstream.config is None:
            return SyncProof("unproven", f"{url}: JetStream is not enabled there")
        if not varz.jetstream.config.sync_always:
            return SyncProof(
                "refuted", f"{url}: acknowledges before it syncs; set `sync_interval: always` in its jetstream block"
            )
    if missing := set(servers) - {varz.server_name for varz in answers}:
        return SyncProof("unproven", f"no monitoring address of the server {', '.join(sorted(missing))}")
    return SyncProof("proven", f"sync always on {len(answers)} server{'s' if len(answers) > 1 else ''}")


def _varz(url: str) -> _Varz:
    address = url.rstrip("/") + "/varz"
    if not address.startswith(("http://", "https://")):
        raise _Unreadable(f"{url}: a monitoring address begins with http:// or https://")
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            return msgspec.convert(json.load(answer), _Varz)
    except (OSError, urllib.error.URLError, ValueError, msgspec.ValidationError) as error:
        raise _Unreadable(f"{address}: {error}") from error
