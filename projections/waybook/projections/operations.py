"""The read model `operations`: one row for each external side effect of a run, with what is known of it.

The table is `migrations/tables/0005_operations.sql`, the statements are `operations.sql`. `status` is intended, succeeded,
failed, absent or unknown; `disputed` holds an outcome that contradicts it, until a person has decided.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from waybook.events import engine as e
from waybook.projections.changes import Handler, OperationEnd, OperationRow, RunChange
from waybook.projections.storable import json_text, text

NAME = "operations"
KEY = ("tenant", "agent", "run", "operation")

INTENDED = "intended"
SETTLED = ""
"""What clears a dispute."""

Insert = tuple[Any, ...]
Patch = tuple[Any, ...]


def _intended(change: RunChange, event: e.OperationIntended) -> None:
    """Also where it was intended before, and surely did not happen: the newest intent stands."""
    row = OperationRow(
        name=text(event.name),
        action=event.action,
        generation=event.generation,
        digest=event.digest,
        approval=event.approval,
        deadline=event.deadline,
        intended_at=change.commit.at,
        sequence=change.sequence,
    )
    key = text(event.key)
    change.operations = {**change.operations, key: row}
    change.operation_ends = {k: end for k, end in change.operation_ends.items() if k != key}


def _settled(change: RunChange, event: e.OperationSettled) -> None:
    _end(
        change,
        event.key,
        status=event.outcome,
        settled_by=event.by,
        settled_at=change.commit.at,
        evidence=json_text(event.evidence),
        **({"disputed": SETTLED} if event.by == "person" else {}),
    )


def _disputed(change: RunChange, event: e.OperationDisputed) -> None:
    _end(change, event.key, disputed=event.outcome)


def _end(change: RunChange, operation: str, **columns: Any) -> None:
    key = text(operation)
    end = change.operations.get(key) or change.operation_ends.get(key)
    if end is None:
        end = OperationEnd()
        change.operation_ends = {**change.operation_ends, key: end}
    for name, value in columns.items():
        setattr(end, name, value)


HANDLERS: dict[type, Handler] = {
    e.OperationIntended: _intended,
    e.OperationSettled: _settled,
    e.OperationDisputed: _disputed,
}


def _named(change: RunChange, operation: str) -> tuple[str, str, str, str]:
    return (change.key.tenant, change.key.agent, change.key.run, operation)


def inserts(changes: Iterable[RunChange]) -> list[Insert]:
    """Operations intended in the batch, for the statement `insert_operations`."""
    return [(*_named(c, o), *msgspec.structs.astuple(row)) for c in changes for o, row in c.operations.items()]


def patches(changes: Iterable[RunChange]) -> list[Patch]:
    """What became of operations intended before, for the statement `patch_operations`."""
    return [(*_named(c, o), *msgspec.structs.astuple(end)) for c in changes for o, end in c.operation_ends.items()]
