"""Which typed events and which versions of them a process knows, and how it reads what others wrote."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect as shapes

from waybook.events.engine import ENGINE_EVENTS, EventPublished
from waybook.events.errors import TerminalError
from waybook.events.typed import DisplayEvent, Event, ExternalEvent, Origin, StartEvent, StopEvent, UnknownEvent
from waybook.events.upcasters import ENGINE_UPCASTERS, Upcaster

E = TypeVar("E", bound=Event)
RESERVED = frozenset({*ENGINE_EVENTS, "Commit", "Event", "UnknownEvent"})
STORED_AS = "stored_as"  # the field that holds the Origin of an event whose class is unknown
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


class RegistryError(TerminalError):
    """The event types of this process do not fit together."""


class DuplicateEventName(RegistryError):
    """Two event classes have the same name; a stored event names its class, so names are unique in a process."""

    code = "DUPLICATE_EVENT_NAME"


class MissingUpcaster(RegistryError):
    """A type's schema was raised, and no upcaster reads one of its older versions."""


class UnreadableEvent(TerminalError):
    """A stored event cannot be read as its class; the message names the event, its version and what is wrong."""


class UnstorableEvent(TerminalError):
    """A typed event holds what JSON cannot: lone surrogates, a number out of range, an object of a foreign class."""


class SchemaTooNew(UnreadableEvent):
    """An event was written by a newer program than this one; update this one."""


class _Entry:
    """What is kept of a class: built once, used for every event."""

    __slots__ = ("ancestors", "cls", "decoder", "personal", "schema")

    def __init__(self, cls: type[Event]) -> None:
        self.cls = cls
        self.schema = cls.SCHEMA
        self.decoder = msgspec.json.Decoder(cls)
        self.ancestors = tuple(c.__name__ for c in _event_bases(cls))
        self.personal = frozenset(f.encode_name for f in _fields(cls) if _is_personal(f.type))


class Registry:
    """Typed events by name, with their schema versions and upcasters; the bases of `typed` are always known.

    >>> registry = Registry(MailReceived, Classified)
    >>> @registry.upcaster("MailReceived", from_version=1)
    ... def with_subject(old: dict[str, Any]) -> dict[str, Any]:
    ...     return {**old, "subject": ""}

    `engine_schemas` replaces the current versions of engine events (for tests of the upcasting).
    """

    def __init__(self, *classes: type[Event], engine_schemas: Mapping[str, int] | None = None) -> None:
        self._entries: dict[str, _Entry] = {}
        self._upcasters: dict[tuple[str, int], Upcaster] = dict(ENGINE_UPCASTERS)
        self._stand_ins: dict[tuple[str, type[Event]], tuple[type[Event], msgspec.json.Decoder[Any]]] = {}
        self._encoder = msgspec.json.Encoder()
        self._personal_fields: set[str] = set()
        self.engine_schemas = {name: cls.SCHEMA for name, cls in ENGINE_EVENTS.items()} | dict(engine_schemas or {})
        self.add(StartEvent, StopEvent, ExternalEvent, DisplayEvent, *classes)

    def add(self, *classes: type[Event]) -> None:
        """Makes classes known, with the event classes that they derive from; a class may be added again.

        Raises DuplicateEventName, RegistryError for a name that cannot stand in a header or is an engine event's.
        """
        for cls in classes:
            for part in (*reversed(_event_bases(cls)), cls):
                self._add(part)

    @classmethod
    def of_module(cls, module: ModuleType) -> "Registry":
        """A registry of all event classes that `module` defines."""
        found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Event)]
        return cls(*(c for c in found if c.__module__ == module.__name__))

    def event(self, cls: type[E]) -> type[E]:
        """Class decorator: adds the class."""
        self.add(cls)
        return cls

    def _add(self, cls: type[Event]) -> None:
        name = cls.__name__
        known = self._entries.get(name)
        if known is not None and known.cls is cls:
            return
        if known is not None:
            raise DuplicateEventName(
                f"an event class named `{name}` already exists in module {_place(known.cls)}; "
                f"rename the one in module {_place(cls)}"
            )
        if name in RESERVED:
            raise DuplicateEventName(
                f"`{name}` is a name of the contract's own; rename the class in module {_place(cls)}"
            )
        if not NAME.fullmatch(name):
            raise RegistryError(f"the event class {name!r} in module {_place(cls)} needs a name like {NAME.pattern}")
        if STORED_AS in cls.__struct_fields__:
            raise RegistryError(
                f"the event class `{name}` in module {_place(cls)}: the field name {STORED_AS} is taken"
            )
        self._entries[name] = _Entry(cls)

    def upcaster(self, name: str, *, from_version: int) -> Callable[[Upcaster], Upcaster]:
        """Decorator of a function that takes the JSON object of `from_version` to the next version.

        `name` is a typed event, an engine event, or `Commit`. Raises RegistryError for a second one.
        """

        def keep(function: Upcaster) -> Upcaster:
            if (name, from_version) in self._upcasters:
                raise RegistryError(f"{name} has two upcasters from version {from_version}")
            self._upcasters[name, from_version] = function
            return function

        return keep

    def mark_personal(self, *fields: str) -> None:
        """Names fields of runs (what transitions set) that hold personal data, as `Personal` does for typed events."""
        self._personal_fields.update(fields)

    def check(self) -> None:
        """Raises MissingUpcaster unless every older version of every type can be read."""
        current = dict(self.engine_schemas)
        current |= {n: e.schema for n, e in self._entries.items() if "SCHEMA" in vars(e.cls)}
        for name, schema in current.items():
            for version in range(1, schema):
                if (name, version) not in self._upcasters:
                    raise MissingUpcaster(f"{name} is at version {schema} and has no upcaster from version {version}")

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[type[Event]]:
        return (entry.cls for entry in self._entries.values())

    def get(self, name: str) -> type[Event] | None:
        """The class of that name, or None."""
        entry = self._entries.get(name)
        return entry.cls if entry else None

    def ancestors(self, name: str) -> tuple[str, ...]:
        """Names of a type's base types, nearest first; none for a type that is not known here."""
        entry = self._entries.get(name)
        return entry.ancestors if entry is not None else ()

    def personal(self, name: str, ancestors: tuple[str, ...] = ()) -> frozenset[str]:
        """JSON names of the fields marked personal in a type, or in its nearest known ancestor; else empty."""
        for known in (name, *ancestors):
            entry = self._entries.get(known)
            if entry is not None:
                return entry.personal
        return frozenset()

    @property
    def personal_fields(self) -> frozenset[str]:
        """Fields of runs that are marked personal."""
        return frozenset(self._personal_fields)

    def upcast(self, name: str, version: int, to: int, data: dict[str, Any]) -> dict[str, Any]:
        """`data`, an object of `version`, in the shape of version `to`. Raises MissingUpcaster."""
        for step in range(version, to):
            upcaster = self._upcasters.get((name, step))
            if upcaster is None:
                raise MissingUpcaster(f"{name} is at version {to} and has no upcaster from version {step}")
            data = upcaster(data)
        return data

    def publish(
        self, event: Event, *, action: str | None = None, request: str | None = None, branch: str | None = None
    ) -> EventPublished:
        """The engine event that stores `event`. Raises as `encode` does."""
        origin = self.encode(event)
        return EventPublished(
            event=origin.event,
            schema=origin.schema,
            payload=origin.payload,
            ancestors=origin.ancestors,
            action=action,
            request=request,
            branch=branch,
        )

    def encode(self, event: Event) -> Origin:
        """An event as it is stored; one that came from an unknown class is stored as it was.

        Raises RegistryError when its class was never added, UnstorableEvent.
        """
        name = type(event).__name__
        entry = self._entries.get(name)
        if entry is None or entry.cls is not type(event):
            origin = origin_of(event)
            if origin is not None:
                return origin
            raise RegistryError(f"the event class `{name}` in module {_place(type(event))} is not registered")
        try:
            payload = self._encoder.encode(event)
        except (TypeError, ValueError, OverflowError, RecursionError) as exc:
            raise UnstorableEvent(f"event {name} cannot be stored: {exc}") from exc
        return Origin(name, entry.schema, msgspec.Raw(payload), entry.ancestors)

    def check_fields(self, stored: Origin) -> None:
        """Whether the fields have the types of their class, which nobody looks at when an event is made.

        Raises UnstorableEvent: who reads the event later would be blamed for it.
        """
        entry = self._entries.get(stored.event)
        if entry is None or entry.schema != stored.schema:
            return
        try:
            entry.decoder.decode(stored.payload)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            raise UnstorableEvent(f"event {stored.event} cannot be stored, it could not be read: {exc}") from exc

    def read(self, published: EventPublished) -> Event:
        """The typed event that `published` holds, upcast when it is of an older version.

        Of a class that is not known here: an instance of the nearest known ancestor, or an UnknownEvent, either
        with what was stored (`origin_of`). Raises UnreadableEvent, SchemaTooNew, MissingUpcaster.
        """
        if published.event not in self._entries:
            return self._stand_in(published)
        return self.read_payload(published.event, published.schema, published.payload)

    def read_payload(self, event: str, schema: int, payload: bytes | msgspec.Raw) -> Event:
        """As `read`, of an event whose class is known here: KeyError for another."""
        entry = self._entries[event]
        if schema > entry.schema:
            raise SchemaTooNew(f"event {event} is of version {schema}, and {entry.schema} is the newest known here")
        try:
            if schema < entry.schema:
                data = msgspec.json.decode(payload, type=dict[str, Any])
                payload = self._encoder.encode(self.upcast(event, schema, entry.schema, data))
            return entry.decoder.decode(payload)
        except msgspec.MsgspecError as exc:
            raise UnreadableEvent(f"event {event} version {schema}: {exc}") from exc

    def _stand_in(self, published: EventPublished) -> Event:
        origin = Origin(published.event, published.schema, published.payload, published.ancestors)
        for name in published.ancestors:
            entry = self._entries.get(name)
            if entry is None:
                continue
            cls, decoder = self._stand_in_class(published.event, entry.cls)
            try:
                fields = decoder.decode(published.payload)
            except msgspec.MsgspecError:
                continue  # its shape and the ancestor's have parted; a farther one may still fit
            values = {f: getattr(fields, f) for f in fields.__struct_fields__}
            return cls(**values, **{STORED_AS: origin})
        return UnknownEvent(stored_as=origin)

    def _stand_in_class(self, name: str, ancestor: type[Event]) -> tuple[type[Event], msgspec.json.Decoder[Any]]:
        key = (name, ancestor)
        if key not in self._stand_ins:
            made = msgspec.defstruct(name, [(STORED_AS, Origin)], bases=(ancestor,), frozen=True, kw_only=True)
            self._stand_ins[key] = (cast("type[Event]", made), msgspec.json.Decoder(ancestor))
        return self._stand_ins[key]


def origin_of(event: Event) -> Origin | None:
    """What was stored of an event whose class is unknown here; None for an event of a known class."""
    origin = getattr(event, STORED_AS, None)
    return origin if isinstance(origin, Origin) else None


def _event_bases(cls: type[Event]) -> tuple[type[Event], ...]:
    return tuple(c for c in cls.__mro__[1:] if issubclass(c, Event) and c is not Event)


def _fields(cls: type[Event]) -> tuple[shapes.Field, ...]:
    info = shapes.type_info(cls)
    return info.fields if isinstance(info, shapes.StructType) else ()


def _is_personal(kind: shapes.Type) -> bool:
    if isinstance(kind, shapes.Metadata):
        return bool((kind.extra or {}).get("personal")) or _is_personal(kind.type)
    return isinstance(kind, shapes.UnionType) and any(_is_personal(t) for t in kind.types)


def _place(cls: type) -> str:
    module = sys.modules.get(cls.__module__)
    try:
        file = inspect.getsourcefile(module) if module else None
    except TypeError:  # a module without a file, as in an interactive session
        file = None
    return f"{cls.__module__} ({file or 'no file'})"
