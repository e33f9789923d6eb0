"""JSON Schema (draft 2020-12) of what stands on the streams, for readers in other languages."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from waybook.events.command import Answer, Command, SignalPayload, StartPayload
from waybook.events.commit import Commit, Position
from waybook.events.engine import ENGINE_EVENTS
from waybook.events.errors import InvalidInput
from waybook.events.registry import Registry

DIALECT = "https://json-schema.org/draft/2020-12/schema"
REFERENCE = "#/$defs/"

ENVELOPES: tuple[type[msgspec.Struct], ...] = (Commit, Position, Command, Answer, StartPayload, SignalPayload)

Kind = Literal["envelope", "engine event", "typed event"]


class Described(msgspec.Struct, frozen=True, order=True):
    """A type that the export describes: an envelope, an event of the engine, or a typed event of an agent."""

    name: str
    kind: Kind
    version: int
    description: str


def described(registry: Registry | None = None) -> tuple[Described, ...]:
    """Every type that `export` describes: envelopes, engine events, then the typed events of `registry`."""
    return tuple(item for item, _ in _types(registry or Registry()))


def _types(registry: Registry) -> list[tuple[Described, type[msgspec.Struct]]]:
    envelopes = [(Described(cls.__name__, "envelope", 1, _first_line(cls)), cls) for cls in ENVELOPES]
    engine = [
        (Described(name, "engine event", registry.engine_schemas[name], _first_line(cls)), cls)
        for name, cls in sorted(ENGINE_EVENTS.items())
    ]
    typed = [
        (Described(cls.__name__, "typed event", cls.SCHEMA, _first_line(cls)), cls)
        for cls in sorted(registry, key=lambda cls: cls.__name__)
    ]
    return [*envelopes, *engine, *typed]


def export(registry: Registry | None = None) -> dict[str, Any]:
    """One schema whose `$defs` describe every type, and which itself describes a commit.

    Each described type carries `x-kind` and `x-version`, its schema version. An `EventPublished` has its typed event
    in `payload`; fields marked `x-personal` may be stored encrypted, as `{"@sealed": text}`.
    """
    definitions, keys = _definitions(registry or Registry())
    commit = keys[ENVELOPES.index(Commit)]
    return _document("urn:waybook:events", "Waybook: commits and events", commit, definitions)


def export_type(name: str, registry: Registry | None = None) -> dict[str, Any]:
    """A schema of its own for one type, with what it refers to. Raises InvalidInput for an unknown name."""
    known = registry or Registry()
    definitions, keys = _definitions(known)
    by_name = {item.name: key for (item, _), key in zip(_types(known), keys, strict=True)}
    if name not in by_name:
        raise InvalidInput(f"there is no type {name!r}; there are: {', '.join(by_name)}")
    needed: dict[str, Any] = {}
    _collect(by_name[name], definitions, needed)
    return _document(f"urn:waybook:events:{name}", name, by_name[name], dict(sorted(needed.items())))


def _document(identity: str, title: str, root: str, definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {"$schema": DIALECT, "$id": identity, "title": title, "$ref": REFERENCE + root, "$defs": definitions}


def _definitions(registry: Registry) -> tuple[dict[str, Any], list[str]]:
    """All definitions, and the key of each described type (longer where two classes have one name)."""
    types = _types(registry)
    pointers, found = msgspec.json.schema_components(
        [cls for _, cls in types], schema_hook=_anything, ref_template=REFERENCE + "{name}"
    )
    keys = [str(pointer["$ref"]).removeprefix(REFERENCE) for pointer in pointers]
    for key, (item, _) in zip(keys, types, strict=True):
        found[key] |= {"x-kind": item.kind, "x-version": item.version}
    return dict(sorted(found.items())), keys


def _anything(kind: type) -> dict[str, Any]:
    """A class that msgspec has no schema for may be anything."""
    return {}


def _collect(name: str, definitions: Mapping[str, Any], needed: dict[str, Any]) -> None:
    if name in needed:
        return
    needed[name] = definitions[name]
    for reference in references(definitions[name]):
        _collect(reference.removeprefix(REFERENCE), definitions, needed)


def references(schema: Any) -> set[str]:
    """Every `$ref` in a schema."""
    if isinstance(schema, Mapping):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(references(value) for value in schema.values()))
    if isinstance(schema, list):
        return set().union(*(references(value) for value in schema))
    return set()


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0] if cls.__doc__ else ""
