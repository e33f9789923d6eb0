"""Compares what a server really stores with what is declared; servers change settings silently."""

import asyncio
from collections.abc import Iterator

from nats.aio.client import Client

from waybook.adapters.embedded.errors import ServerTooOld
from waybook.adapters.embedded.server_version import MINIMUM_VERSION, check_server_version
from waybook.adapters.nats.topology.declaration import STATE_PREFIX, Topology
from waybook.adapters.nats.topology.difference import show
from waybook.adapters.nats.topology.durability import prove_sync
from waybook.adapters.nats.topology.planning import Plan, compare
from waybook.adapters.nats.topology.report import Finding, Report
from waybook.adapters.nats.topology.server import Stored, only_server, server_version, stored_consumers, stored_streams
from waybook.adapters.nats.topology.settings import declared_consumers, declared_streams


async def check(nc: Client, topology: Topology, monitor_url: str | None = None) -> Report:
    """Compares every declared stream, bucket and consumer with the server's, field by field.

    `monitor_url`: the server's monitoring address, several of a cluster separated by commas; without it the
    report's `sync` is unproven. Raises PortUnavailable when the server does not answer, PortMisconfigured when
    it refuses; a server that is too old is a finding.
    """
    version = server_version(nc)
    try:
        check_server_version(version)
    except ServerTooOld as error:
        old = Finding("server", "version", f"{MINIMUM_VERSION} or newer", version, str(error))
        return Report(version, 0, (old,), await prove_sync(monitor_url))
    streams, consumers = declared_streams(topology), declared_consumers(topology)
    have_streams, have_consumers, connected = await asyncio.gather(
        stored_streams(nc, list(streams)), stored_consumers(nc, list(consumers)), only_server(nc)
    )
    found = list(_setting_findings(compare(streams, consumers, have_streams, have_consumers)))
    for name, stored in have_streams.items():
        if stored is not None and name.startswith(STATE_PREFIX):
            found += _holes(name, stored)
    found += [
        Finding(f"{stream}/{name}", "paused", "false", "true")
        for (stream, name), stored in have_consumers.items()
        if stored is not None and stored.paused
    ]
    proof = await prove_sync(monitor_url, _holders(list(have_streams.values())), connected)
    return Report(version, len(streams) + len(consumers), tuple(found), proof)


def _setting_findings(plan: Plan) -> Iterator[Finding]:
    for change in plan.changes:
        if change.action == "create":
            kind = "stream" if change.consumer is None else "consumer"
            yield Finding(
                change.name, "presence", "there", "missing", f"no such {kind}; `waybook streams apply` makes it"
            )
        for d in change.differences:
            yield Finding(change.name, d.field, show(d.field, d.declared), show(d.field, d.stored), d.breaks)


def _holes(name: str, stored: Stored) -> Iterator[Finding]:
    """Commits that are gone, however the stream is set now."""
    state = stored.state
    if state.num_deleted:
        yield Finding(name, "num_deleted", "0", str(state.num_deleted), "commits are gone")
    if state.lost is not None and bytes(state.lost) != b"null":
        yield Finding(name, "lost", "none", bytes(state.lost).decode(), "the server lost commits")
    if state.first_seq > 1:
        yield Finding(name, "first_seq", "1", str(state.first_seq), "the first commits are gone")


def _holders(stored: list[Stored | None]) -> set[str]:
    """Names of the servers that hold a copy of any of the streams."""
    clusters = [stream.cluster for stream in stored if stream is not None]
    return {name for c in clusters for name in (c.leader, *(peer.name for peer in c.replicas)) if name}
