"""Which settings the invariants stand on. A declared file is held to them, and so is what a server stores."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

from waybook.adapters.nats.topology.declaration import STATE_PREFIX, Topology
from waybook.adapters.nats.topology.settings import (
    CONSUMER_IGNORED,
    CONSUMER_OFF,
    STREAM_IGNORED,
    STREAM_OFF,
    complete,
    declared_consumers,
    declared_streams,
)


class Rule(msgspec.Struct, frozen=True):
    """A setting must have this value, or else."""

    field: str
    value: object
    otherwise: str


_ESSENTIAL = (
    Rule("storage", "file", "a restart loses everything"),
    Rule("persist_mode", "default", "messages are acknowledged before they are on disk"),
    Rule("no_ack", False, "nobody learns whether a message was stored"),
    Rule("sealed", False, "nothing can be stored"),
    Rule("mirror", None, "its content is made elsewhere"),
    Rule("sources", None, "others write into it unguarded"),
    Rule("subject_transform", None, "messages are stored under other subjects than they are guarded by"),
    Rule("allow_msg_counter", False, "every subject is a counter"),
    Rule("discard_new_per_subject", False, "a single run can be refused for its length"),
)
_NOTHING_LEAVES = (
    Rule("max_age", 0, "messages vanish with age"),
    Rule("max_msgs", -1, "messages are refused or dropped by number"),
    Rule("max_msgs_per_subject", -1, "older messages of a subject are dropped"),
    Rule("allow_msg_ttl", False, "a publisher can give a message an end"),
    Rule("subject_delete_marker_ttl", 0, "it switches roll-ups on"),
    Rule("allow_rollup_hdrs", False, "any publisher can wipe a subject or the whole stream with Nats-Rollup"),
    Rule("allow_msg_schedules", False, "schedules silently switch deny_purge off and roll-ups on"),
    Rule("discard", "new", "a full stream drops its oldest messages"),
)
_UNTOUCHABLE = (
    *_ESSENTIAL,
    *_NOTHING_LEAVES,
    Rule("retention", "limits", "messages vanish when they are read"),
    Rule("deny_delete", True, "a message can be deleted, so the log is not the truth"),
    Rule("deny_purge", True, "the stream can be purged, so the log is not the truth"),
)
_QUEUE = (
    *_ESSENTIAL,
    *_NOTHING_LEAVES,
    Rule("retention", "workqueue", "finished commands stay, or a lease cannot be told from its end"),
)
STREAM_RULES: Mapping[str, tuple[Rule, ...]] = {
    "STATE_*": (
        *_UNTOUCHABLE,
        Rule("allow_direct", True, "histories cannot be read"),
        Rule("allow_atomic", True, "group commit is refused"),
    ),
    "AUDIT": _UNTOUCHABLE,
    "COMMANDS": _QUEUE,
    "AUDITIN": _QUEUE,
    "TIMERS": (
        *_ESSENTIAL,
        Rule("retention", "workqueue", "fired timers pile up"),
        Rule("allow_msg_schedules", True, "timers do not fire"),
        Rule("max_age", 0, "timers further away than that vanish"),
        Rule("max_msgs", -1, "the oldest timers are dropped"),
        Rule("max_bytes", -1, "the oldest timers are dropped"),
        Rule("deny_purge", False, "timers cannot be cancelled"),
    ),
    "DEAD": (*_ESSENTIAL, *_NOTHING_LEAVES, Rule("retention", "limits", "dead commands vanish when they are read")),
    "OBJ_*": (
        *_ESSENTIAL,
        Rule("max_age", 0, "objects of open runs expire"),
        Rule("allow_msg_ttl", False, "objects of open runs can expire"),
        Rule("discard", "new", "a full bucket drops parts of objects"),
    ),
}
CONSUMER_RULES: Mapping[str, tuple[Rule, ...]] = {
    "COMMANDS/*": (
        Rule("ack_policy", "explicit", "a command is not held until its effect is committed"),
        Rule("max_deliver", -1, "a command is given up without a trace after some deliveries"),
        Rule("deliver_policy", "all", "commands that are already there are never delivered"),
        Rule("headers_only", False, "commands come without their content"),
        Rule("deliver_subject", None, "commands are pushed, not pulled by free slots"),
        Rule("inactive_threshold", 0, "the consumer and its leases vanish when nobody pulls for a while"),
        Rule("backoff", None, "leases have other lengths than walkers renew them by"),
    ),
    "STATE_*/*": (
        Rule("max_deliver", -1, "commits are skipped after some deliveries"),
        Rule("deliver_policy", "all", "the first commits are never delivered"),
        Rule("inactive_threshold", 0, "the consumer vanishes when nobody pulls for a while"),
        Rule("deliver_subject", None, "commits are pushed without regard to the checkpoint"),
    ),
    "STATE_*/projections": (
        Rule("filter_subject", None, "read models miss commits and take the gaps for losses"),
        Rule("filter_subjects", None, "read models miss commits and take the gaps for losses"),
        Rule("headers_only", False, "commits come without their events"),
    ),
    "STATE_*/relay": (
        Rule("ack_policy", "explicit", "of two schedulers one acknowledges what the other has not done"),
        Rule("filter_subject", None, "timers of other runs are never armed"),
        Rule("filter_subjects", None, "timers of other runs are never armed"),
    ),
    "TIMERS/*": (
        Rule("ack_policy", "explicit", "a fire is lost before its command is stored"),
        Rule("max_deliver", -1, "a fire is given up without a trace after some deliveries"),
        Rule("deliver_policy", "all", "timers that fired before are never told"),
        Rule("headers_only", False, "fires come without what they are about"),
        Rule("inactive_threshold", 0, "the consumer vanishes when nobody pulls for a while"),
        Rule("deliver_subject", None, "fires are pushed, not pulled at the allowed rate"),
    ),
}
# A difference from the declaration in one of these breaks something, whatever the stream.
AS_DECLARED: Mapping[str, str] = {
    "subjects": "messages go elsewhere or nowhere",
    "retention": "messages are kept by another rule than the readers expect",
    "storage": "it survives other accidents than declared",
    "allow_direct": "readers use direct get",
    "allow_atomic": "publishers send batches",
    "num_replicas": "it survives fewer accidents than declared",
    "filter_subject": "the consumer sees other messages than its readers expect",
    "filter_subjects": "the consumer sees other messages than its readers expect",
    "ack_policy": "acknowledgements mean something else",
    "ack_wait": "leases have another length than walkers renew them by",
    "max_ack_pending": "long steps stall the queue at another number than declared",
}
REQUIRED_STREAMS = ("COMMANDS", "TIMERS", "AUDITIN", "AUDIT", "TRACE", "DEAD")


def stream_rules(name: str) -> dict[str, Rule]:
    """The rules for a stream, by setting."""
    return _matching(STREAM_RULES, name)


def consumer_rules(stream: str, name: str) -> dict[str, Rule]:
    """The rules for a consumer, by setting."""
    return _matching(CONSUMER_RULES, f"{stream}/{name}")


def _matching(rules: Mapping[str, tuple[Rule, ...]], name: str) -> dict[str, Rule]:
    return {rule.field: rule for pattern, group in rules.items() if fnmatchcase(name, pattern) for rule in group}


def broken_rules(topology: Topology) -> list[tuple[str, str]]:
    """(path in the file, what is wrong) for every declaration that cannot or must not be made."""
    return [
        *_missing(topology),
        *_misnamed(topology),
        *_broken_streams(topology),
        *_broken_consumers(topology),
        *_overlaps(topology),
    ]


def _missing(topology: Topology) -> Iterator[tuple[str, str]]:
    names = [name for name in REQUIRED_STREAMS if name not in topology.streams]
    if not any(fnmatchcase(name, "STATE_*") for name in topology.streams):
        names.insert(0, "STATE_g1_00")
    for name in names:
        yield "/streams", f"the stream {name} is missing"


def _misnamed(topology: Topology) -> Iterator[tuple[str, str]]:
    """A stream of STATE holds the generation and shard that its name says, or positions cannot be found again."""
    for name, stream in topology.streams.items():
        if name.startswith(STATE_PREFIX):
            wanted = f"state.{name.removeprefix(STATE_PREFIX).replace('_', '.', 1)}.>"
            if stream.subjects != (wanted,):
                yield f"/streams/{name}/subjects", f"{name}: subjects must be [{wanted}], as its name says"


def _broken_streams(topology: Topology) -> Iterator[tuple[str, str]]:
    for name, settings in declared_streams(topology).items():
        full = complete(settings, STREAM_OFF, STREAM_IGNORED)
        for rule in stream_rules(name).values():
            if full.get(rule.field) != rule.value:
                yield _stream_path(name, rule.field), _sentence(name, rule)


def _broken_consumers(topology: Topology) -> Iterator[tuple[str, str]]:
    for (stream, name), settings in declared_consumers(topology).items():
        full = complete(settings, CONSUMER_OFF, CONSUMER_IGNORED)
        for rule in consumer_rules(stream, name).values():
            if full.get(rule.field) != rule.value:
                yield f"/streams/{stream}/consumers/{name}/{rule.field}", _sentence(f"{stream}/{name}", rule)


def _sentence(where: str, rule: Rule) -> str:
    value = {"None": "absent", "True": "true", "False": "false", "-1": "unlimited", "0": "left out"}.get(
        str(rule.value)
    )
    return f"{where}: {rule.field} must be {value or rule.value}, otherwise {rule.otherwise}"


def _stream_path(name: str, field: str) -> str:
    kind, _, bucket = name.partition("_")
    folder = {"KV": "/buckets/key_value", "OBJ": "/buckets/objects"}.get(kind)
    return f"{folder}/{bucket}/{field}" if folder else f"/streams/{name}/{field}"


def _overlaps(topology: Topology) -> Iterator[tuple[str, str]]:
    """What the server would refuse halfway: subjects of two streams, filters of one work queue (10065, 10100)."""
    subjects = [(name, subject) for name, stream in topology.streams.items() for subject in stream.subjects]
    for index, (name, subject) in enumerate(subjects):
        for other, other_subject in subjects[:index]:
            if overlap(subject, other_subject):
                yield f"/streams/{name}/subjects", f"{name}: {subject} overlaps {other_subject} of {other}"
    for name, stream in topology.streams.items():
        filters = [(key, consumer.filter or ">") for key, consumer in stream.consumers.items()]
        for index, (key, subject) in enumerate(filters if stream.retention == "workqueue" else []):
            for other, other_subject in filters[:index]:
                if overlap(subject, other_subject):
                    path = f"/streams/{name}/consumers/{key}/filter_subject"
                    yield path, f"{name}/{key}: {subject} overlaps {other_subject} of {other}"


def overlap(one: str, other: str) -> bool:
    """Whether a subject exists that both patterns match."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)
