"""What a topology file declares, as types. Field names in the file are JetStream's own."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import field
from msgspec.structs import replace

from waybook.adapters.nats.topology.quantity import UNLIMITED, Bytes, Count, Milliseconds
from waybook.events.errors import InvalidInput

STATE_PREFIX = "STATE_"
MINUTE_MS = 60_000


class Consumer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A durable pull consumer. `filter` None: everything in the stream."""

    description: str = ""
    filter: str | None = field(name="filter_subject", default=None)
    ack_policy: Literal["explicit", "all", "none"] = "explicit"
    ack_wait_ms: Milliseconds = field(name="ack_wait", default=MINUTE_MS)
    max_ack_pending: Count = 1_000
    max_deliver: Count = UNLIMITED
    headers_only: bool = False


class Stream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream and its consumers. `max_age_ms` 0: messages do not age."""

    subjects: tuple[str, ...]
    retention: Literal["limits", "workqueue", "interest"]
    discard: Literal["old", "new"]
    description: str = ""
    storage: Literal["file", "memory"] = "file"
    replicas: Count = field(name="num_replicas", default=1)
    compression: Literal["none", "s2"] = "none"
    deny_delete: bool = False
    deny_purge: bool = False
    allow_direct: bool = False
    allow_atomic: bool = False
    allow_rollup_hdrs: bool = False
    allow_msg_ttl: bool = False
    allow_msg_schedules: bool = False
    max_age_ms: Milliseconds = field(name="max_age", default=0)
    max_bytes: Bytes = UNLIMITED
    max_msg_size: Bytes = UNLIMITED
    max_msgs: Count = UNLIMITED
    max_msgs_per_subject: Count = UNLIMITED
    duplicate_window_ms: Milliseconds = field(name="duplicate_window", default=2 * MINUTE_MS)
    consumers: dict[str, Consumer] = {}


class KeyValueBucket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key-value bucket; `history` values are kept for each key."""

    description: str = ""
    history: Count = 1
    storage: Literal["file", "memory"] = "file"
    replicas: Count = field(name="num_replicas", default=1)
    allow_direct: bool = True
    max_bytes: Bytes = UNLIMITED


class ObjectBucket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object bucket. It has no age limit: objects of open runs never expire."""

    description: str = ""
    storage: Literal["file", "memory"] = "file"
    replicas: Count = field(name="num_replicas", default=1)
    max_bytes: Bytes = UNLIMITED


class Buckets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Buckets by kind, then by name."""

    key_value: dict[str, KeyValueBucket] = {}
    objects: dict[str, ObjectBucket] = {}


class Topology(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a Waybook installation needs of a NATS server."""

    format: Literal[1]
    streams: dict[str, Stream]
    buckets: Buckets = Buckets()

    def with_parameters(
        self,
        *,
        replicas: int | None = None,
        ack_wait_ms: int | None = None,
        max_bytes: Mapping[str, int] | None = None,
    ) -> "Topology":
        """The same topology for another place: production (`replicas`), tests (`ack_wait_ms`, `max_bytes`).

        `replicas` holds for every stream and bucket, `ack_wait_ms` for every consumer that acknowledges one by
        one, `max_bytes` for the streams it names (-1: unlimited). Raises InvalidInput for a name that is not
        declared.
        """
        limits = dict(max_bytes or {})
        if unknown := limits.keys() - self.streams.keys():
            raise InvalidInput(f"max_bytes names streams that are not declared: {', '.join(sorted(unknown))}")
        everywhere = {} if replicas is None else {"replicas": replicas}
        streams = {
            name: replace(
                stream,
                **everywhere,
                max_bytes=limits.get(name, stream.max_bytes),
                consumers={k: _with_ack_wait(c, ack_wait_ms) for k, c in stream.consumers.items()},
            )
            for name, stream in self.streams.items()
        }
        buckets = Buckets(
            key_value={k: replace(b, **everywhere) for k, b in self.buckets.key_value.items()},
            objects={k: replace(b, **everywhere) for k, b in self.buckets.objects.items()},
        )
        return replace(self, streams=streams, buckets=buckets)

    def only(self, *streams: str) -> "Topology":
        """Only the named streams, without buckets. Raises InvalidInput for a name that is not declared."""
        if unknown := set(streams) - self.streams.keys():
            raise InvalidInput(f"not declared: {', '.join(sorted(unknown))}")
        return replace(self, streams={name: self.streams[name] for name in streams}, buckets=Buckets())


def _with_ack_wait(consumer: Consumer, ack_wait_ms: int | None) -> Consumer:
    if ack_wait_ms is None or consumer.ack_policy != "explicit":
        return consumer
    return replace(consumer, ack_wait_ms=ack_wait_ms)
