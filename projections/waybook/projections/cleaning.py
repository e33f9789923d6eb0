"""The JSON of a batch's changes, cleaned after PostgreSQL has refused some of it."""

from collections.abc import Iterable

import msgspec

from waybook.projections.changes import RunChange
from waybook.projections.storable import clean_json, json_text, text


def clean(changes: Iterable[RunChange]) -> None:
    """Leaves in every JSON column what jsonb takes."""
    for change in changes:
        change.fields = {text(name): _member(value) for name, value in change.fields.items()}
        if change.started is not None:
            change.started.flags = clean_json(change.started.flags)
            change.started.parent = _cleaned(change.started.parent)
        for row in change.actions.values():
            row.output = _cleaned(row.output)
        for end in change.ends.values():
            end.output = _cleaned(end.output)
        for approval in change.approvals.values():
            approval.deciders = clean_json(approval.deciders)
        for operation in (*change.operations.values(), *change.operation_ends.values()):
            operation.evidence = _cleaned(operation.evidence)


def _member(value: object) -> msgspec.Raw:
    return msgspec.Raw(clean_json(json_text(value)).encode())


def _cleaned(value: str | None) -> str | None:
    return clean_json(value) if value is not None else None
