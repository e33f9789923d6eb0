"""Fields too large for a commit: they stand in the object bucket, and a reference with their hash in their place. Pure.

What is split is a commit's bytes, after the codec: what it sealed stays sealed in the bucket.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from waybook.events.codec import UndecodableCommit
from waybook.events.subjects import RunKey

MARK = b'{"@object":'
"""How a reference begins, byte for byte: other spellings of the same JSON are fields like any other."""

MOST_WHOLE = 240 * 1024
"""Bytes of a commit that is stored as it is: one message, and nothing else to read."""

TARGET = 200 * 1024
"""Bytes that a larger one has at most when its fields are put aside, the largest first."""

LEAST_FIELD = 1024
"""Bytes of the smallest field that is put aside."""

MOST_EVENT = 768 * 1024
"""Bytes of one event's payload: it has to fit into the command that carries it to another run, of 1 MiB at most."""

_CARRIERS = {b'"EventPublished"': ("payload",), b'"RunTold"': ("body",), b'"ChildRequested"': ("start", "body")}
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raws = msgspec.json.Decoder(list[msgspec.Raw])


class FieldReference(msgspec.Struct, frozen=True):
    """What stands in a field's place: the object's name, and the hexadecimal SHA-256 and the size of the field's JSON."""

    name: str = msgspec.field(name="@object")
    sha256: str
    bytes: int


class LostField(UndecodableCommit):
    """A field's object is gone, is not what was stored, or is another run's."""


class TooLarge(NamedTuple):
    """An event that no reference makes small enough."""

    event: int
    field: str
    bytes: int


class _Field(NamedTuple):
    event: int
    name: str
    value: bytes


def folder(key: RunKey) -> str:
    """Where a run's large fields stand in the bucket."""
    return f"fields/{key.tenant}/{key.agent}/{key.run}"


def needs_split(payload: bytes) -> bool:
    """Whether `split` may change the commit."""
    return len(payload) > MOST_WHOLE or MARK in payload


def too_large(payload: bytes) -> TooLarge | None:
    """The first event with a payload over 768 KiB, and its largest field."""
    for number, fields in _by_event(_members.decode(payload)):
        if sum(len(field.value) for field in fields) > MOST_EVENT:
            largest = max(fields, key=lambda field: len(field.value))
            return TooLarge(number, largest.name, len(largest.value))
    return None


def split(payload: bytes, key: RunKey) -> tuple[bytes, dict[str, bytes]]:
    """The commit as it is to be stored, and the objects to store before it, by name.

    A field that looks like a reference is always put aside, so that a reference in the log is never somebody's text.
    """
    commit = _members.decode(payload)
    fields = [field for _, some in _by_event(commit) for field in some]
    fields.sort(key=lambda field: len(field.value), reverse=True)
    size, aside, objects = len(payload), dict[tuple[int, str], FieldReference](), dict[str, bytes]()
    for field in fields:
        wanted = size > TARGET and len(payload) > MOST_WHOLE and len(field.value) >= LEAST_FIELD
        if wanted or field.value.startswith(MARK):
            digest = hashlib.sha256(field.value).hexdigest()
            reference = FieldReference(f"{folder(key)}/{digest}", digest, len(field.value))
            aside[field.event, field.name] = reference
            objects[reference.name] = field.value
            size += len(msgspec.json.encode(reference)) - len(field.value)
    return (_replaced(commit, aside), objects) if aside else (payload, objects)


def references(payload: bytes) -> Iterator[FieldReference]:
    """The references that stand in a commit."""
    if MARK in payload:
        for _, fields in _by_event(_members.decode(payload)):
            yield from (_reference(field.value) for field in fields if field.value.startswith(MARK))


def join(payload: bytes, key: RunKey, objects: Mapping[str, bytes]) -> bytes:
    """The commit with its fields in their places again, each byte for byte. Raises LostField."""
    commit = _members.decode(payload)
    back: dict[tuple[int, str], msgspec.Raw] = {}
    for _, fields in _by_event(commit):
        for field in fields:
            if field.value.startswith(MARK):
                back[field.event, field.name] = msgspec.Raw(_found(_reference(field.value), field, key, objects))
    return _replaced(commit, back) if back else payload


def _found(reference: FieldReference, field: _Field, key: RunKey, objects: Mapping[str, bytes]) -> bytes:
    value = objects.get(reference.name)
    where = f"field {field.name!r} of event {field.event} is kept as object {reference.name}"
    if not reference.name.startswith(f"{folder(key)}/"):
        raise LostField(f"{where}, which is not this run's", str(key), None)
    if value is None:
        raise LostField(f"{where}, which is gone", str(key), None)
    if hashlib.sha256(value).hexdigest() != reference.sha256:
        raise LostField(f"{where}, which does not hold what was stored", str(key), None)
    return value


def _reference(value: bytes) -> FieldReference:
    try:
        return msgspec.json.decode(value, type=FieldReference)
    except msgspec.DecodeError as error:
        raise LostField(f"a reference cannot be read: {error}", None, None) from error


def _by_event(commit: Mapping[str, msgspec.Raw]) -> Iterator[tuple[int, list[_Field]]]:
    """The fields of each event that a commit carries in full."""
    for number, event in enumerate(_raws.decode(commit.get("events", b"[]"))):
        members = _fields_of(event)
        if members is not None:
            yield number, [_Field(number, name, bytes(value)) for name, value in members.items()]


def _path(event: msgspec.Raw) -> tuple[str, ...]:
    """Where an engine event holds the fields of a typed one; empty when it holds none."""
    return _CARRIERS.get(bytes(_members.decode(event).get("type", b"")), ())


def _fields_of(event: msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    """The fields of the typed event in an engine event; None when there is none, or it is no object."""
    path, value = _path(event), event
    for name in path:
        inner = _members.decode(value).get(name, msgspec.Raw())
        if not bytes(inner).lstrip().startswith(b"{"):
            return None
        value = inner
    return _members.decode(value) if path else None


def _replaced(
    commit: Mapping[str, msgspec.Raw], values: Mapping[tuple[int, str], msgspec.Raw | FieldReference]
) -> bytes:
    events = _raws.decode(commit["events"])
    for number in {event for event, _ in values}:
        fields = _fields_of(events[number])
        assert fields is not None
        changed = {name: values.get((number, name), value) for name, value in fields.items()}
        events[number] = _with(events[number], _path(events[number]), changed)
    return msgspec.json.encode({**commit, "events": events})


def _with(value: msgspec.Raw, path: tuple[str, ...], fields: Mapping[str, msgspec.Raw | FieldReference]) -> msgspec.Raw:
    if not path:
        return msgspec.Raw(msgspec.json.encode(fields))
    members = _members.decode(value)
    return msgspec.Raw(msgspec.json.encode({**members, path[0]: _with(members[path[0]], path[1:], fields)}))
