"""Proof that a server syncs to disk before it acknowledges. Only the monitoring address tells."""

import asyncio
from collections.abc import Collection
from typing import Literal

import msgspec

from waybook.adapters.embedded.errors import ServerUnreachable
from waybook.adapters.embedded.monitoring import read_monitor

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
    server_id: str
    server_name: str
    jetstream: _JetStream = msgspec.field(default_factory=_JetStream)


async def prove_sync(monitor_url: str | None, servers: Collection[str] = (), connected: str | None = None) -> SyncProof:
    """Asks the monitoring addresses (`monitor_url`, several separated by commas).

    Unproven without an address, when one does not answer, and when a server that has to be among them is not:
    `servers` are the names of those that hold copies, `connected` is the id of the only server there is (None in
    a cluster).
    """
    urls = [url.strip() for url in (monitor_url or "").split(",") if url.strip()]
    if not urls:
        return SyncProof("unproven", "no monitoring address; set WAYBOOK_NATS_MONITOR_URL or --monitor-url")
    try:
        answers = await asyncio.gather(*(_varz(url) for url in urls))
    except ServerUnreachable as error:
        return SyncProof("unproven", str(error))
    for url, varz in zip(urls, answers, strict=True):
        if varz.jetstream.config is None:
            return SyncProof("unproven", f"{url}: JetStream is not enabled there")
        if not varz.jetstream.config.sync_always:
            return SyncProof(
                "refuted", f"{url}: acknowledges before it syncs; set `sync_interval: always` in its jetstream block"
            )
    if connected is not None and connected not in {varz.server_id for varz in answers}:
        return SyncProof("unproven", f"{', '.join(urls)}: the monitoring address of another server")
    if missing := set(servers) - {varz.server_name for varz in answers}:
        return SyncProof("unproven", f"no monitoring address of the server {', '.join(sorted(missing))}")
    return SyncProof("proven", f"sync always on {len(answers)} server{'s' if len(answers) > 1 else ''}")


async def _varz(url: str) -> _Varz:
    answer = await read_monitor(url, "varz", timeout_s=TIMEOUT_S)
    try:
        return msgspec.convert(answer, _Varz)
    except msgspec.ValidationError as error:
        raise ServerUnreachable(f"{url} is no monitoring address of a nats-server: {error}") from error
