"""The read model `inbound_messages`: one row a run, with its lifecycle state and companion fields.

The table is `migrations/tables/0001_read_models.sql`, the statements are `inbound_messages.sql`. What a lifecycle
table's fields hold goes into the column `fields`; the view in front gives the documents' names a column each.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from waybook.events import engine as e
from waybook.projections.changes import Handler, MessageRow, RunChange
from waybook.projections.hold import FAILED, hold
from waybook.projections.progress import to_bytes
from waybook.projections.storable import json_text, text

NAME = "inbound_messages"
KEY = ("tenant", "agent", "run")
MOVING = (
    "status", "hold", "hold_reason", "hold_until", "version", "walk", "sequence", "updated_at",
    "processed_at", "ended_at", "outcome", "error_message", "progress", "fields",
)  # fmt: skip
COLUMNS = (*KEY, *MOVING, *MessageRow.__struct_fields__)
"""Of a whole row, in the order of `inserts`; every commit may change those of MOVING."""

RECEIVED = "received"
PROCESSED = frozenset({"approved", "sent", "rejected", "archived", "failed", "completed", "cancelled"})
"""States whose time of entry is `processed_at`, unless the fields of the transition say another."""

Insert = tuple[Any, ...]
Patch = tuple[Any, ...]


class _Start(msgspec.Struct, rename={"sender": "from"}):
    """What the start event of a message may hold; of any type."""

    sender: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    subject: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    date: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_start = msgspec.json.Decoder(_Start).decode


def _started(change: RunChange, event: e.RunStarted) -> None:
    commit = change.commit
    change.progress.status = event.state
    change.started = MessageRow(
        definition=event.definition,
        received_at=commit.at,
        thread=_text(event.thread),
        parent=json_text(event.parent) if event.parent is not None else None,
        content=_text(event.content),
        flags=json_text(event.flags),
    )
    published = next((x for x in commit.events if type(x) is e.EventPublished and x.action is None), None)
    if published is not None:
        _read_start(change.started, published)


def _read_start(row: MessageRow, published: e.EventPublished) -> None:
    try:
        start = _decode_start(published.payload)
    except msgspec.DecodeError:
        return  # a start event that is no JSON object has none of these members
    row.sender = _member(start.sender)
    row.subject = _member(start.subject)
    row.date = _member(start.date)


def _member(raw: msgspec.Raw | msgspec.UnsetType) -> str | None:
    if raw is msgspec.UNSET:
        return None
    value = msgspec.json.decode(raw)
    if value is None or isinstance(value, str):
        return _text(value)
    return bytes(raw).decode("utf-8", "replace")


def _text(value: str | None) -> str | None:
    return text(value) if value is not None else None


def _transitioned(change: RunChange, event: e.Transitioned) -> None:
    progress = change.progress
    progress.status = event.to_state
    if event.to_state in PROCESSED:
        progress.processed_at = change.commit.at
    if event.from_state == FAILED != event.to_state or event.to_state == RECEIVED:
        progress.error_message = None
    _merge(change, event.fields)


def _fields_set(change: RunChange, event: e.FieldsSet) -> None:
    _merge(change, event.fields)


def _merge(change: RunChange, fields: dict[str, Any]) -> None:
    """Companion fields; two of them are columns of their own, because the engine's events set them too."""
    change.fields.update(fields)
    if "error_message" in fields:
        message = _value(change.fields.pop("error_message"))
        change.progress.error_message = message if message is None or isinstance(message, str) else json_text(message)
    if isinstance(processed_at := _value(fields.get("processed_at")), int):
        change.progress.processed_at = processed_at
        del change.fields["processed_at"]


def _value(member: Any) -> Any:
    return msgspec.json.decode(member) if type(member) is msgspec.Raw else member


def _failed(change: RunChange, event: e.StepFailed) -> None:
    change.progress.error_message = event.error.text


def _convicted(change: RunChange, event: e.CommandConvicted) -> None:
    change.progress.error_message = event.reason


def _ended(change: RunChange, event: e.RunEnded) -> None:
    change.progress.ended_at = change.commit.at
    change.progress.outcome = event.outcome


HANDLERS: dict[type, Handler] = {
    e.RunStarted: _started,
    e.Transitioned: _transitioned,
    e.FieldsSet: _fields_set,
    e.StepFailed: _failed,
    e.CommandConvicted: _convicted,
    e.RunEnded: _ended,
}


def _moving(change: RunChange, no_fields: str | None) -> tuple[Any, ...]:
    """Key and MOVING columns; `no_fields` stands for no companion fields."""
    p = change.progress
    held = hold(p)
    return (
        *(change.key.tenant, change.key.agent, change.key.run),
        *(p.status, held.kind, held.reason, held.until, p.version, p.walk, p.sequence, p.updated_at),
        *(p.processed_at, p.ended_at, _text(p.outcome), _text(p.error_message)),
        to_bytes(p),
        json_text(change.fields) if change.fields else no_fields,
    )


def inserts(changes: Iterable[RunChange]) -> list[Insert]:
    """Rows of runs that started in the batch, for the statement `insert_messages`."""
    return [(*_moving(c, "{}"), *msgspec.structs.astuple(c.started)) for c in changes if c.started is not None]


def patches(changes: Iterable[RunChange]) -> list[Patch]:
    """Changes of rows that were there before, for the statement `patch_messages`."""
    return [_moving(c, None) for c in changes if c.started is None]
