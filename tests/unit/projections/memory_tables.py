"""The read models' tables in memory, as the SQL statements treat them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from waybook.events.subjects import RunKey
from waybook.projections import agent_actions, approvals, inbound_messages, operations, timers
from waybook.projections.batch import fold_batch, runs_of
from waybook.projections.changes import (
    ActionEnd,
    ActionRow,
    ApprovalEnd,
    ApprovalRow,
    MessageRow,
    OperationEnd,
    OperationRow,
    RunChange,
)
from waybook.projections.progress import Entry, Progress, from_bytes

Row = dict[str, Any]


class MemoryTables:
    """Rows by key; `apply` is a transaction of the projector."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, ...], Row] = {}
        self.actions: dict[tuple[str, ...], Row] = {}
        self.approvals: dict[tuple[str, ...], Row] = {}
        self.timers: dict[tuple[str, ...], tuple[str, int, str]] = {}
        self.operations: dict[tuple[str, ...], Row] = {}

    def apply(self, entries: Iterable[Entry]) -> None:
        entries = list(entries)
        changes = fold_batch(entries, self._known(runs_of(entries)))
        for row in inbound_messages.inserts(changes):
            self.messages[row[:3]] = dict(
                zip((*inbound_messages.MOVING, *MessageRow.__struct_fields__), row[3:], strict=True)
            )
            self.messages[row[:3]]["fields"] = msgspec.json.decode(row[16])
        for row in inbound_messages.patches(changes):
            stored = self.messages[row[:3]]
            fields = stored["fields"] | msgspec.json.decode(row[16] or "{}")
            stored.update(zip(inbound_messages.MOVING, row[3:], strict=True))
            stored["fields"] = fields
        for row in agent_actions.drops(changes):
            self.actions.pop(row, None)
        for row in agent_actions.inserts(changes):
            self.actions[row[:4]] = dict(zip(ActionRow.__struct_fields__, row[4:], strict=True))
        for row in agent_actions.patches(changes):
            end = dict(zip(ActionEnd.__struct_fields__, row[4:], strict=True))
            if end["retry_count"] is None:
                del end["retry_count"]
            self.actions[row[:4]].update(end)
        for row in approvals.inserts(changes):
            self.approvals[row[:4]] = dict(zip(ApprovalRow.__struct_fields__, row[4:], strict=True))
        for row in approvals.patches(changes):
            new = zip(ApprovalEnd.__struct_fields__, row[4:], strict=True)
            self.approvals[row[:4]].update({name: value for name, value in new if value is not None})
        for row in timers.drops(changes):
            self.timers.pop(row)
        for row in timers.inserts(changes):
            self.timers[row[:4]] = row[4:]
        self._apply_operations(changes)

    def _apply_operations(self, changes: list[RunChange]) -> None:
        for row in operations.inserts(changes):
            new = dict(zip(OperationRow.__struct_fields__, row[4:], strict=True))
            new["status"] = new["status"] or "intended"
            new["disputed"] = new["disputed"] or None
            self.operations[row[:4]] = new
        for row in operations.patches(changes):
            stored = self.operations[row[:4]]
            patch = zip(OperationEnd.__struct_fields__, row[4:], strict=True)
            stored.update({name: value for name, value in patch if value is not None})
            stored["disputed"] = stored["disputed"] or None

    def _known(self, keys: list[RunKey]) -> dict[RunKey, Progress]:
        rows = {key: self.messages.get((key.tenant, key.agent, key.run)) for key in keys}
        return {key: from_bytes(row["progress"]) for key, row in rows.items() if row is not None}

    def message(self, key: RunKey) -> Row:
        return self.messages[(key.tenant, key.agent, key.run)]

    def actions_of(self, key: RunKey) -> dict[str, Row]:
        return {k[3]: row for k, row in self.actions.items() if k[:3] == (key.tenant, key.agent, key.run)}

    def timers_of(self, key: RunKey) -> dict[str, tuple[str, int, str]]:
        return {k[3]: row for k, row in self.timers.items() if k[:3] == (key.tenant, key.agent, key.run)}

    def operations_of(self, key: RunKey) -> dict[str, Row]:
        return {k[3]: row for k, row in self.operations.items() if k[:3] == (key.tenant, key.agent, key.run)}

    def approvals_of(self, key: RunKey) -> dict[str, Row]:
        return {k[3]: row for k, row in self.approvals.items() if k[:3] == (key.tenant, key.agent, key.run)}
