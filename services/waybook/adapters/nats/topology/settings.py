"""Declarations as JetStream's own configurations, and what a server stores, made comparable."""

from collections.abc import Mapping

import msgspec

from waybook.adapters.nats.topology.declaration import Consumer, KeyValueBucket, ObjectBucket, Stream, Topology

NANOSECONDS = 1_000_000  # in a millisecond
Settings = dict[str, object]

# What a setting is when the server's answer leaves it out.
STREAM_OFF: Mapping[str, object] = {
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_msg_size": -1,
    "max_msgs_per_subject": -1,
    "max_age": 0,
    "compression": "none",
    "description": "",
    "persist_mode": "default",
    "subject_delete_marker_ttl": 0,
    "mirror": None,
    "sources": None,
    "subject_transform": None,
    **dict.fromkeys(
        (
            "allow_atomic",
            "allow_batched",
            "allow_direct",
            "allow_msg_counter",
            "allow_msg_schedules",
            "allow_msg_ttl",
            "allow_rollup_hdrs",
            "deny_delete",
            "deny_purge",
            "discard_new_per_subject",
            "no_ack",
            "sealed",
        ),
        False,
    ),
}
CONSUMER_OFF: Mapping[str, object] = {
    "description": "",
    "filter_subject": None,
    "filter_subjects": None,
    "deliver_policy": "all",
    "deliver_subject": None,
    "headers_only": False,
    "inactive_threshold": 0,
    "opt_start_seq": 0,
    "opt_start_time": None,
    "backoff": None,
    "rate_limit_bps": 0,
    "replay_policy": "instant",
    "priority_groups": None,
    "mem_storage": False,
}
# An operator's own business, or the server's: neither compared nor changed.
STREAM_IGNORED = frozenset({
    "name", "metadata", "placement", "republish", "consumer_limits", "mirror_direct", "first_seq", "template_owner",
})  # fmt: skip
CONSUMER_IGNORED = frozenset({
    "name", "durable_name", "metadata", "num_replicas", "max_waiting", "max_batch", "max_expires", "max_bytes",
    "sample_freq", "pause_until",
})  # fmt: skip


def declared_streams(topology: Topology) -> dict[str, Settings]:
    """JetStream name to stream configuration, buckets included: only what is declared."""
    streams = {name: _stream(stream) for name, stream in topology.streams.items()}
    streams |= {f"KV_{name}": _key_value(name, bucket) for name, bucket in topology.buckets.key_value.items()}
    streams |= {f"OBJ_{name}": _objects(name, bucket) for name, bucket in topology.buckets.objects.items()}
    return streams


def declared_consumers(topology: Topology) -> dict[tuple[str, str], Settings]:
    """(stream, consumer) to consumer configuration: only what is declared."""
    return {
        (stream_name, name): _consumer(consumer)
        for stream_name, stream in topology.streams.items()
        for name, consumer in stream.consumers.items()
    }


def complete(settings: Mapping[str, object], off: Mapping[str, object], ignored: frozenset[str]) -> Settings:
    """`settings` with everything that is left out, without what is ignored."""
    return {**off, **{name: value for name, value in settings.items() if name not in ignored and value is not None}}


def _own(declaration: msgspec.Struct, *left_out: str) -> Settings:
    """The fields of a declaration under JetStream's names and in its units."""
    settings: Settings = {}
    for field in msgspec.structs.fields(declaration):
        value = getattr(declaration, field.name)
        if field.name in left_out or value is None:
            continue
        if field.name.endswith("_ms"):
            value = value * NANOSECONDS
        settings[field.encode_name] = list(value) if isinstance(value, tuple) else value
    return settings


def _stream(stream: Stream) -> Settings:
    return _own(stream, "consumers")


def _consumer(consumer: Consumer) -> Settings:
    return {**_own(consumer), "deliver_policy": "all", "replay_policy": "instant"}


def _key_value(name: str, bucket: KeyValueBucket) -> Settings:
    """The stream that clients expect under a key-value bucket (ADR-8)."""
    return {
        **_own(bucket, "history"),
        "subjects": [f"$KV.{name}.>"],
        "retention": "limits",
        "discard": "new",
        "max_msgs_per_subject": bucket.history,
        "deny_delete": True,
        "allow_rollup_hdrs": True,
        "duplicate_window": 120_000 * NANOSECONDS,
    }


def _objects(name: str, bucket: ObjectBucket) -> Settings:
    """The stream that clients expect under an object bucket (ADR-20)."""
    return {
        **_own(bucket),
        "subjects": [f"$O.{name}.C.>", f"$O.{name}.M.>"],
        "retention": "limits",
        "discard": "new",
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "duplicate_window": 120_000 * NANOSECONDS,
    }
