"""The read model `approvals`: one row for each approval that a run asked for, with what became of it.

The table is `migrations/tables/0003_approvals.sql`, the statements are `approvals.sql`. `status` is pending, approved,
rejected, used, expired or revoked.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from waybook.events import engine as e
from waybook.projections.changes import ApprovalRow, Handler, RunChange
from waybook.projections.storable import json_text, text

NAME = "approvals"
KEY = ("tenant", "agent", "run", "approval")
COLUMNS = (*KEY, *ApprovalRow.__struct_fields__)
"""Of a whole row, in the order of `inserts`."""

EXPIRED = "expired"

Insert = tuple[Any, ...]
Patch = tuple[Any, ...]


def _requested(change: RunChange, event: e.ApprovalRequested) -> None:
    change.ask_approval(
        change.event_name,
        ApprovalRow(
            action=text(event.action),
            resource=text(event.resource),
            scope=text(event.scope),
            digest=text(event.digest),
            requester=text(event.requester),
            deciders=json_text(event.deciders),
            expires=event.expires,
            policy=event.policy,
            summary=_text(event.summary),
            requested_at=change.commit.at,
            sequence=change.sequence,
        ),
    )


def _decided(change: RunChange, event: e.ApprovalDecided) -> None:
    change.end_approval(
        event.approval,
        status=event.decision,
        decided_by=text(event.by),
        decided_at=event.received_at,
        reason=_text(event.reason),
    )


def _used(change: RunChange, event: e.ApprovalUsed) -> None:
    change.end_approval(event.approval, status="used", operation=text(event.operation))


def _revoked(change: RunChange, event: e.ApprovalRevoked) -> None:
    status = EXPIRED if event.reason == EXPIRED else "revoked"
    change.end_approval(event.approval, status=status, revoked=text(event.reason), revoked_at=change.commit.at)


def _text(value: str | None) -> str | None:
    return text(value) if value is not None else None


HANDLERS: dict[type, Handler] = {
    e.ApprovalRequested: _requested,
    e.ApprovalDecided: _decided,
    e.ApprovalUsed: _used,
    e.ApprovalRevoked: _revoked,
}


def _named(change: RunChange, approval: str) -> tuple[str, str, str, str]:
    return (change.key.tenant, change.key.agent, change.key.run, approval)


def inserts(changes: Iterable[RunChange]) -> list[Insert]:
    """Approvals asked for in the batch, for the statement `insert_approvals`."""
    return [(*_named(c, a), *msgspec.structs.astuple(row)) for c in changes for a, row in c.approvals.items()]


def patches(changes: Iterable[RunChange]) -> list[Patch]:
    """What became of approvals asked for before, for the statement `patch_approvals`."""
    return [(*_named(c, a), *msgspec.structs.astuple(end)) for c in changes for a, end in c.approval_ends.items()]
