"""Where what a server stores departs from what is declared, and which departures break something."""

from collections.abc import Mapping

import msgspec

from waybook.adapters.nats.topology.quantity import show_duration, show_size
from waybook.adapters.nats.topology.rules import AS_DECLARED, Rule, consumer_rules, stream_rules
from waybook.adapters.nats.topology.settings import (
    CONSUMER_IGNORED,
    CONSUMER_OFF,
    STREAM_IGNORED,
    STREAM_OFF,
    Settings,
    complete,
)

_DURATIONS = frozenset({"max_age", "duplicate_window", "ack_wait", "inactive_threshold", "subject_delete_marker_ttl"})
_SIZES = frozenset({"max_bytes", "max_msg_size"})


class Difference(msgspec.Struct, frozen=True):
    """One setting that is stored otherwise than declared. `breaks`: what that breaks; None when it is harmless."""

    field: str
    declared: object
    stored: object
    breaks: str | None = None

    def __str__(self) -> str:
        return f"{self.field}: declared {show(self.field, self.declared)}, stored {show(self.field, self.stored)}"


def stream_differences(name: str, declared: Settings, stored: Settings) -> list[Difference]:
    """The differences of a stream or bucket."""
    return _differences(declared, stored, STREAM_OFF, STREAM_IGNORED, stream_rules(name))


def consumer_differences(stream: str, name: str, declared: Settings, stored: Settings) -> list[Difference]:
    """The differences of a consumer."""
    return _differences(declared, stored, CONSUMER_OFF, CONSUMER_IGNORED, consumer_rules(stream, name))


def show(field: str, value: object) -> str:
    """A setting for people: units, words instead of sentinels."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and field in _DURATIONS:
        return show_duration(value)
    if isinstance(value, int) and field in _SIZES:
        return show_size(value)
    if value is None or value in ("", []):
        return "none"
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return "unlimited" if value == -1 else str(value)


def _differences(
    declared: Settings, stored: Settings, off: Mapping[str, object], ignored: frozenset[str], rules: Mapping[str, Rule]
) -> list[Difference]:
    wanted, found = complete(declared, off, ignored), complete(stored, off, ignored)
    return [
        Difference(field, wanted.get(field), found.get(field), _breaks(field, wanted, found, rules))
        for field in sorted(wanted.keys() | found.keys())
        if not _same(field, wanted.get(field), found.get(field))
    ]


def _same(field: str, declared: object, stored: object) -> bool:
    if field == "num_replicas" and isinstance(declared, int) and isinstance(stored, int):
        return stored >= declared  # a floor: nobody takes copies away from a stream that was scaled up
    if field == "subjects" and isinstance(declared, list) and isinstance(stored, list):
        return sorted(declared) == sorted(stored)
    return declared == stored or (not declared and not stored)


def _breaks(field: str, wanted: Settings, found: Settings, rules: Mapping[str, Rule]) -> str | None:
    rule = rules.get(field)
    if rule is not None and found.get(field) != rule.value:
        return rule.otherwise
    if field == "max_ack_pending":
        more = found.get(field, 0)
        if isinstance(more, int) and (more < 0 or more >= int(str(wanted.get(field)))):
            return None
    return AS_DECLARED.get(field)
