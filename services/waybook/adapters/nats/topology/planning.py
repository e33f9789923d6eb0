"""What has to be done on a server so that it stores what is declared."""

import asyncio
from collections.abc import Sequence
from typing import Literal

import msgspec
from nats.aio.client import Client

from waybook.adapters.nats.topology.declaration import Topology
from waybook.adapters.nats.topology.difference import Difference, consumer_differences, stream_differences
from waybook.adapters.nats.topology.server import Stored, require_version, stored_consumers, stored_streams
from waybook.adapters.nats.topology.settings import Settings, declared_consumers, declared_streams

# The server refuses to take these back once they are on.
_ONE_WAY = frozenset({"deny_delete", "deny_purge", "allow_msg_ttl", "allow_msg_schedules", "sealed"})
_FIXED_STREAM = frozenset({
    "storage", "persist_mode", "mirror", "sources", "subject_transform", "allow_msg_counter",
})  # fmt: skip
_FIXED_CONSUMER = frozenset({
    "ack_policy", "deliver_policy", "replay_policy", "mem_storage", "deliver_subject", "opt_start_seq",
    "opt_start_time",
})  # fmt: skip
_STREAM_WAY_OUT = "copy its messages into a stream made by `waybook streams apply`, or declare what is stored"
_CONSUMER_WAY_OUT = "stop its readers, delete the consumer, then `waybook streams apply`"


class Change(msgspec.Struct, frozen=True):
    """One stream or consumer (`STREAM` or `STREAM/CONSUMER`) and what `apply` would do with it.

    `person`: a setting differs that the server cannot change or that takes something away; `advice` says what
    to do. `wanted` is the whole configuration to send.
    """

    name: str
    action: Literal["create", "update", "same", "person"]
    differences: tuple[Difference, ...] = ()
    advice: str = ""
    wanted: Settings = {}

    @property
    def consumer(self) -> tuple[str, str] | None:
        """(stream, consumer), None when it is a stream."""
        stream, slash, name = self.name.partition("/")
        return (stream, name) if slash else None


class Plan(msgspec.Struct, frozen=True):
    """Every declared stream, bucket and consumer, in the order of the declaration."""

    changes: tuple[Change, ...]

    def of(self, action: str) -> list[Change]:
        """The changes with this action."""
        return [change for change in self.changes if change.action == action]

    @property
    def empty(self) -> bool:
        """Nothing is to be done."""
        return all(change.action == "same" for change in self.changes)


async def plan(nc: Client, topology: Topology) -> Plan:
    """Compares `topology` with the server; changes nothing.

    Raises PortMisconfigured when the server is too old or refuses, PortUnavailable when it does not answer.
    """
    require_version(nc)
    streams, consumers = declared_streams(topology), declared_consumers(topology)
    have_streams, have_consumers = await asyncio.gather(
        stored_streams(nc, list(streams)), stored_consumers(nc, list(consumers))
    )
    return compare(streams, consumers, have_streams, have_consumers)


def compare(
    streams: dict[str, Settings],
    consumers: dict[tuple[str, str], Settings],
    have_streams: dict[str, Stored | None],
    have_consumers: dict[tuple[str, str], Stored | None],
) -> Plan:
    """The plan for what is declared (the first two) and stored (the others). Pure."""
    changes = [_stream_change(name, settings, have_streams[name]) for name, settings in streams.items()]
    changes += [_consumer_change(*name, settings, have_consumers[name]) for name, settings in consumers.items()]
    return Plan(tuple(changes))


def _stream_change(name: str, declared: Settings, stored: Stored | None) -> Change:
    if stored is None:
        return Change(name, "create", wanted=declared)
    differences = stream_differences(name, declared, stored.config)
    reasons = [reason for d in differences if (reason := _stream_obstacle(d))]
    return _change(name, declared, stored, differences, reasons, _STREAM_WAY_OUT)


def _consumer_change(stream: str, name: str, declared: Settings, stored: Stored | None) -> Change:
    full_name = f"{stream}/{name}"
    if stored is None:
        return Change(full_name, "create", wanted=declared)
    differences = consumer_differences(stream, name, declared, stored.config)
    reasons = [f"{d.field} of a consumer cannot be changed" for d in differences if d.field in _FIXED_CONSUMER]
    return _change(full_name, declared, stored, differences, reasons, _CONSUMER_WAY_OUT)


def _change(
    name: str, declared: Settings, stored: Stored, differences: list[Difference], reasons: Sequence[str], way_out: str
) -> Change:
    if not differences:
        return Change(name, "same")
    if reasons:
        return Change(name, "person", tuple(differences), f"{'; '.join(reasons)}: {way_out}")
    return Change(name, "update", tuple(differences), wanted=_merged(declared, stored.config, differences))


def _merged(declared: Settings, stored: Settings, differences: list[Difference]) -> Settings:
    """What is stored, with the declaration over it: an update replaces everything that it does not repeat."""
    undone = {d.field: d.declared for d in differences}
    merged = {**stored, **declared, **undone}
    if isinstance(stored.get("num_replicas"), int) and "num_replicas" not in undone:
        merged["num_replicas"] = stored["num_replicas"]
    metadata = stored.get("metadata")
    if isinstance(metadata, dict):
        merged["metadata"] = {key: value for key, value in metadata.items() if not key.startswith("_nats.")}
    return {field: value for field, value in merged.items() if value is not None}


def _stream_obstacle(difference: Difference) -> str | None:
    """Why a person has to look at it; None when the server can simply be told."""
    field, declared, stored = difference.field, difference.declared, difference.stored
    if field in _ONE_WAY and stored is True:
        return f"{field} cannot be switched off again"
    if field == "retention" and "workqueue" in (declared, stored):
        return "retention cannot change to or from workqueue"
    if field in _FIXED_STREAM:
        return f"{field} of a stream cannot be changed without moving its messages"
    if field == "subjects" and isinstance(stored, list) and isinstance(declared, list):
        lost = [subject for subject in stored if subject not in declared]
        return f"messages on {', '.join(lost)} would no longer be found" if lost else None
    return None
