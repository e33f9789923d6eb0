"""Commits as bytes and back, their headers and their ids."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec

from waybook.events import headers as names
from waybook.events.commit import Commit
from waybook.events.engine import (
    ENGINE_EVENTS,
    ApprovalRequested,
    EngineEvent,
    EventPublished,
    FieldsSet,
    OperationDisputed,
    OperationIntended,
    OperationSettled,
    RunTold,
    Transitioned,
)
from waybook.events.errors import InvalidInput, TerminalError
from waybook.events.registry import MissingUpcaster, Registry

SEALED = "@sealed"


class UndecodableCommit(TerminalError):
    """A stored commit cannot be read. `subject` and `version` say which, as far as they are known."""

    def __init__(self, what: str, subject: str | None, version: int | None) -> None:
        self.subject = subject
        self.version = version
        super().__init__(f"commit {version if version is not None else '?'} of {subject or 'an unnamed run'}: {what}")


class BrokenCommit(UndecodableCommit):
    """The bytes are no commit, or one of its events does not have its type's shape."""


class NoCommit(BrokenCommit):
    """The bytes do not even tell a version: whatever put them there, no program of any version will read a commit in them."""


class UnknownEventType(UndecodableCommit):
    """A commit holds a type of engine event that this program does not have; a newer one wrote it."""


class UnstorableCommit(TerminalError):
    """A commit holds what JSON cannot: lone surrogates, a number out of range, an object of a foreign class."""


class CommitTooNew(UndecodableCommit):
    """A commit holds an engine event of a version above the one this program has; a newer one wrote it."""


class FieldPlace(msgspec.Struct, frozen=True):
    """Which field a value stands in; a cipher may choose its key by it and bind the ciphertext to it.

    `event` is the published event's type, or the engine event's. `subject` is the run's subject, when given.
    """

    subject: str | None
    event: str
    field: str


class FieldCipher(Protocol):
    """Encrypts single fields that are marked personal. Both directions are synchronous and do no IO."""

    def encrypt(self, place: FieldPlace, value: bytes) -> str:
        """A text that stands for `value`, the field's JSON."""
        ...

    def decrypt(self, place: FieldPlace, text: str) -> bytes:
        """The JSON that `encrypt` was given, or other JSON to put in its place (when the key is gone)."""
        ...


class _Tag(msgspec.Struct):
    type: str


class _Loose(msgspec.Struct):
    """As much of a commit as is needed to say what is wrong with it, or to bring it up to date."""

    version: int | None = None
    schemas: dict[str, int] = {}
    events: list[msgspec.Raw] = []


_Change = Callable[[str, frozenset[str], str, bytes], bytes]

APPROVAL_WORDS = ("resource", "summary")
"""Texts of an approval that are personal whatever agent asks for it: they name people and what is written to them."""

GONE = "(erased)"
"""What stands where the key of such a text is gone."""

_WORDS = frozenset(APPROVAL_WORDS)
_SEALED_WORD = f"{SEALED}:"

_CARRIERS: dict[type[EngineEvent], str] = {
    Transitioned: "fields",
    FieldsSet: "fields",
    OperationIntended: "params",
    OperationSettled: "evidence",
    OperationDisputed: "evidence",
}


class Codec:
    """Turns commits into bytes and back; JSON, decoders and encoders built once.

    The bytes are self-describing: `Commit.schemas` names engine events above version 1. With a `cipher`,
    personal fields of published payloads and of what transitions and operations carry (`Personal`,
    `Registry.mark_personal`) are stored as `{"@sealed": text}`. Without one, sealed fields stay as they are.
    """

    def __init__(self, registry: Registry | None = None, cipher: FieldCipher | None = None) -> None:
        self.registry = registry or Registry()
        self._cipher = cipher
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(Commit)
        self._loose = msgspec.json.Decoder(_Loose)
        self._tag = msgspec.json.Decoder(_Tag)
        self._members = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._raised = {ENGINE_EVENTS[n]: v for n, v in self.registry.engine_schemas.items() if v > 1}

    @property
    def seals(self) -> bool:
        """Whether personal fields are encrypted, so that what it decoded must not be stored as it is."""
        return self._cipher is not None

    def encode(self, commit: Commit, subject: str | None = None) -> bytes:
        """The bytes to store. `subject`, the run's, is for the cipher and errors. Raises UnstorableCommit."""
        if self._raised:
            schemas = {type(e).__name__: v for e in commit.events if (v := self._raised.get(type(e))) is not None}
            commit = msgspec.structs.replace(commit, schemas=schemas or None)
        if self._cipher is not None:
            sealed = tuple(self._seal(self._cipher, event, subject) for event in commit.events)
            commit = msgspec.structs.replace(commit, events=sealed)
        try:
            return self._encoder.encode(commit)
        except (TypeError, ValueError, OverflowError, RecursionError) as exc:
            raise UnstorableCommit(f"commit {commit.version} of {subject or 'a run'} cannot be stored: {exc}") from exc

    def decode(self, payload: bytes, headers: Mapping[str, str] | None = None, subject: str | None = None) -> Commit:
        """The commit that `payload` holds, events of older versions upcast.

        `headers` and `subject` only name the commit in errors and to the cipher; the bytes say all. Members that
        this program does not know are passed over. Raises BrokenCommit, UnknownEventType, CommitTooNew,
        MissingUpcaster.
        """
        try:
            commit = self._decoder.decode(payload)
        except (msgspec.DecodeError, RecursionError) as exc:
            commit = self._decode_other(payload, headers, subject, exc)
        else:
            if commit.schemas is not None or (self._raised and any(type(e) in self._raised for e in commit.events)):
                commit = self._decode_other(payload, headers, subject, None)
        if self._cipher is not None and b'"@sealed' in payload:
            opened = tuple(self._open(self._cipher, event, subject) for event in commit.events)
            commit = msgspec.structs.replace(commit, events=opened)
        return commit

    def decode_known(
        self,
        payload: bytes,
        wanted: Collection[str] | None = None,
        headers: Mapping[str, str] | None = None,
        subject: str | None = None,
    ) -> tuple[Commit, tuple[int, ...]]:
        """As `decode`, for readers that may be older than the writers: the commit, and its events' indexes.

        Engine events of types that this program does not have are left out, so the indexes may have holes. A type
        in `wanted` is never left out, and none is read that is of a newer version: these raise as in `decode`.
        """
        try:
            commit = self.decode(payload, headers, subject)
            return commit, tuple(range(len(commit.events)))
        except UnknownEventType:
            loose = self._loose.decode(payload)
        kinds = [self._tag.decode(event).type for event in loose.events]
        kept = tuple(
            i for i, kind in enumerate(kinds) if kind in self.registry.engine_schemas or kind in (wanted or ())
        )
        members = self._members.decode(payload)
        members["events"] = msgspec.Raw(self._encoder.encode([loose.events[i] for i in kept]))
        return self.decode(self._encoder.encode(members), headers, subject), kept

    def _decode_other(
        self, payload: bytes, headers: Mapping[str, str] | None, subject: str | None, error: Exception | None
    ) -> Commit:
        """Bytes that do not fit as they are, or may fit and mean an older shape."""
        name = subject or (headers or {}).get(names.COMMIT)
        version: int | None = None
        try:
            loose = self._loose.decode(payload)
            version = loose.version
            types = [self._tag.decode(event).type for event in loose.events]
            events = [self._current(t, loose, e, name) for t, e in zip(types, loose.events, strict=True)]
            members = self._members.decode(payload)
            members.pop("schemas", None)
            members["events"] = msgspec.Raw(self._encoder.encode(events))
            return self._decoder.decode(self._encoder.encode(members))
        except (msgspec.DecodeError, RecursionError) as exc:
            broken = NoCommit if version is None else BrokenCommit
            raise broken(str(error or exc), name, version) from exc

    def _current(self, kind: str, loose: _Loose, event: msgspec.Raw, name: str | None) -> msgspec.Raw:
        known = self.registry.engine_schemas.get(kind)
        if known is None:
            raise UnknownEventType(f"unknown event type {kind!r}", name, loose.version)
        stored = loose.schemas.get(kind, 1)
        if stored > known:
            raise CommitTooNew(f"{kind} is of version {stored}, {known} is the newest here", name, loose.version)
        if stored == known:
            return event
        try:
            data = self.registry.upcast(kind, stored, known, msgspec.json.decode(event, type=dict[str, Any]))
        except MissingUpcaster:
            raise
        except Exception as exc:
            raise BrokenCommit(f"upcasting {kind} from {stored}: {exc!r}", name, loose.version) from exc
        return msgspec.Raw(self._encoder.encode(data))

    def _seal(self, cipher: FieldCipher, event: EngineEvent, subject: str | None) -> EngineEvent:
        def seal(kind: str, marked: frozenset[str], field: str, value: bytes) -> bytes:
            if field not in marked and _sealed_text(value) is None:  # what only looks sealed is sealed, too
                return value
            return self._encoder.encode({SEALED: cipher.encrypt(FieldPlace(subject, kind, field), value)})

        return self._map_fields(event, seal)

    def _open(self, cipher: FieldCipher, event: EngineEvent, subject: str | None) -> EngineEvent:
        def unseal(kind: str, marked: frozenset[str], field: str, value: bytes) -> bytes:
            text = _sealed_text(value)
            return value if text is None else cipher.decrypt(FieldPlace(subject, kind, field), text)

        return self._map_fields(event, unseal)

    def _map_fields(self, event: EngineEvent, change: _Change) -> EngineEvent:
        """`event` with `change` applied to each field of its payload, or of what it carries along."""
        if isinstance(event, EventPublished):
            marked = self.registry.personal(event.event, event.ancestors)
            return msgspec.structs.replace(event, payload=self._map_payload(event.event, marked, event.payload, change))
        if isinstance(event, RunTold):
            told = self._map_payload(event.event, self.registry.personal(event.event), event.body, change)
            return msgspec.structs.replace(event, body=told)
        if isinstance(event, ApprovalRequested):
            return self._map_words(event, change)
        member = _CARRIERS.get(type(event))
        if member is None:
            return event
        kind, marked = type(event).__name__, self.registry.personal_fields
        values: dict[str, Any] = {}
        for field, value in getattr(event, member).items():
            values[field] = msgspec.json.decode(change(kind, marked, field, self._encoder.encode(value)))
        return msgspec.structs.replace(event, **{member: values})

    def _map_payload(self, kind: str, marked: frozenset[str], payload: msgspec.Raw, change: _Change) -> msgspec.Raw:
        if not bytes(payload).lstrip().startswith(b"{"):
            return payload  # no object, so it has no fields
        members = self._members.decode(payload)
        changed = {f: msgspec.Raw(change(kind, marked, f, bytes(v))) for f, v in members.items()}
        return msgspec.Raw(self._encoder.encode(changed))

    def _map_words(self, event: ApprovalRequested, change: _Change) -> ApprovalRequested:
        """An approval says in words what it is about (an address, a subject): texts, so a sealed one is a text too."""
        changed: dict[str, str] = {}
        for field in APPROVAL_WORDS:
            text = getattr(event, field)
            if text is None:
                continue
            given = self._encoder.encode({SEALED: text[len(_SEALED_WORD) :]} if text.startswith(_SEALED_WORD) else text)
            said = change(ApprovalRequested.__name__, _WORDS, field, given)
            sealed = _sealed_text(said)
            opened = msgspec.json.decode(said) if sealed is None else f"{_SEALED_WORD}{sealed}"
            changed[field] = opened if isinstance(opened, str) else GONE
        return msgspec.structs.replace(event, **changed)


def _sealed_text(value: bytes) -> str | None:
    """The ciphertext in a field's JSON, or None when it is not sealed."""
    if b'"@sealed"' not in value:
        return None
    data = msgspec.json.decode(value)
    text = data.get(SEALED) if isinstance(data, dict) and len(data) == 1 else None
    return text if isinstance(text, str) else None


def commit_headers(
    commit: Commit,
    *,
    commit_id: str | None = None,
    previous: str | None = None,
    causation: str | None = None,
    correlation: str | None = None,
    traceparent: str | None = None,
    parent: str | None = None,
) -> dict[str, str]:
    """The headers of a commit, without the guard: types, schema versions above 1, definition, and what is given.

    `previous` is the commit id of the run's last commit. Raises InvalidInput for a value that cannot stand in a
    header.
    """
    kinds = (commit.definition, *[_kind(event) for event in commit.events])
    known = _OWN.get(kinds) if commit.schemas is None else None
    headers = known.copy() if known is not None else _own_headers(commit, kinds)
    if commit_id:
        headers[names.COMMIT] = commit_id
    if previous:
        headers[names.PREVIOUS] = previous
    if causation:
        headers[names.CAUSATION] = _line(names.CAUSATION, causation)
    if correlation:
        headers[names.CORRELATION] = _line(names.CORRELATION, correlation)
    if traceparent:
        headers[names.TRACEPARENT] = _line(names.TRACEPARENT, traceparent)
    if parent:
        headers[names.PARENT] = _line(names.PARENT, parent)
    return headers


_Kind = tuple[str, int] | type
"""What the headers say of an event: its class, or name and schema version of a published one."""

_OWN: dict[tuple[str | _Kind, ...], dict[str, str]] = {}
"""The headers that follow from the kinds of a commit's events: there are few such, and every commit asks."""

MOST_KINDS = 4096


def _kind(event: EngineEvent) -> _Kind:
    return (event.event, event.schema) if type(event) is EventPublished else type(event)


def _line(name: str, value: str) -> str:
    """`value`, when it can stand in a header; InvalidInput otherwise."""
    if not (value.isascii() and value.isprintable()):
        raise InvalidInput(f"header {name}: {value!r} holds characters that a header cannot")
    return value


def _own_headers(commit: Commit, kinds: tuple[str | _Kind, ...]) -> dict[str, str]:
    """Each type once, a published one as `EventPublished/Name`, versions above 1, and the definition."""
    schemas = dict(commit.schemas) if commit.schemas else {}
    types: dict[str, None] = {}
    for event in commit.events:
        if isinstance(event, EventPublished):
            types[f"EventPublished/{event.event}"] = None
            name, schema = event.event, event.schema
        else:
            name, schema = type(event).__name__, event.SCHEMA
            types[name] = None
        if schema > 1:
            schemas[name] = schema
    headers = {names.TYPES: ",".join(types)}
    if schemas:
        headers[names.SCHEMAS] = ",".join([f"{name}:{version}" for name, version in schemas.items()])
    if commit.definition:
        headers[names.DEFINITION] = commit.definition
    for name, value in headers.items():
        _line(name, value)
    if commit.schemas is None:
        if len(_OWN) >= MOST_KINDS:
            _OWN.clear()
        _OWN[kinds] = headers.copy()
    return headers


def commit_id(subject: str, expected: int, payload: bytes) -> str:
    """Names a commit by where it was to stand and what it says: 64 lower-case hexadecimal digits.

    sha256(subject, expected sequence in decimal, payload), the three joined by NUL. Different bytes never share an id,
    so finding the id in the log proves that these bytes were stored.
    """
    return hashlib.sha256(b"%b\0%d\0%b" % (subject.encode(), expected, payload)).hexdigest()
