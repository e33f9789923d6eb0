"""What a batch of commits changes of one run, as the handlers of the read models gather it."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from waybook.events.commit import Commit
from waybook.events.subjects import RunKey
from waybook.projections.progress import Progress


class MessageRow(msgspec.Struct, gc=False):
    """The columns of `inbound_messages` that a run's first commit sets for good."""

    definition: str
    received_at: int
    thread: str | None = None
    parent: str | None = None
    content: str | None = None
    flags: str = "[]"
    sender: str | None = None
    subject: str | None = None
    date: str | None = None


class ActionEnd(msgspec.Struct, gc=False):
    """The columns of `agent_actions` that change when an attempt ends."""

    status: str
    retry_count: int | None = None
    exhausted: bool = False
    duration_ms: int | None = None
    model_used: str | None = None
    token_usage: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    ended_at: int | None = None
    output: str | None = None


class ActionRow(msgspec.Struct, gc=False):
    """A whole row of `agent_actions`, begun or made pending by a commit of the batch."""

    step: str
    trigger: str
    walk: int
    attempt: int
    status: str
    retry_count: int
    sequence: int
    branch: str | None = None
    deadline: int | None = None
    started_at: int | None = None
    exhausted: bool = False
    duration_ms: int | None = None
    model_used: str | None = None
    token_usage: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    ended_at: int | None = None
    output: str | None = None

    def end(self, end: ActionEnd) -> None:
        """Takes over what an end says; a `retry_count` of None keeps the row's."""
        self.status = end.status
        if end.retry_count is not None:
            self.retry_count = end.retry_count
        self.exhausted = end.exhausted
        self.duration_ms = end.duration_ms
        self.model_used = end.model_used
        self.token_usage = end.token_usage
        self.error_type = end.error_type
        self.error_message = end.error_message
        self.ended_at = end.ended_at
        self.output = end.output


class ApprovalEnd(msgspec.Struct, gc=False):
    """The columns of `approvals` that change after it was asked for; None: as they were. Times in ms, UTC."""

    status: str = "pending"
    decided_by: str | None = None
    decided_at: int | None = None
    reason: str | None = None
    operation: str | None = None
    revoked: str | None = None
    revoked_at: int | None = None


class ApprovalRow(ApprovalEnd, kw_only=True, gc=False):
    """A whole row of `approvals`, asked for by a commit of the batch."""

    action: str
    resource: str
    scope: str
    digest: str
    requester: str
    deciders: str
    expires: int | None
    policy: int
    summary: str | None
    requested_at: int
    sequence: int


class OperationEnd(msgspec.Struct, gc=False):
    """The columns of `operations` that change after it was intended; None: as they were. Times in ms, UTC."""

    status: str | None = None
    settled_by: str | None = None
    settled_at: int | None = None
    evidence: str | None = None
    disputed: str | None = None


class OperationRow(OperationEnd, kw_only=True, gc=False):
    """A whole row of `operations`, intended by a commit of the batch."""

    name: str
    action: str
    generation: int
    digest: str
    approval: str | None
    deadline: int
    intended_at: int
    sequence: int


NO_ROWS: dict[str, ApprovalRow] = {}
NO_ENDS: dict[str, ApprovalEnd] = {}
NO_OPERATIONS: dict[str, OperationRow] = {}
NO_OUTCOMES: dict[str, OperationEnd] = {}
"""Shared by all changes without approvals and operations; never filled."""

NO_TIMERS: Mapping[str, tuple[str, int, str]] = {}


class RunChange:
    """Changes of one run in one batch. `commit` and `index` say where the handler stands.

    `started` is set when the run's first commit is in the batch: then its row is new. `fields` are merged into the
    row's. `actions` are rows begun here, `ends` ends of rows begun before, `dropped` pending rows that go. `approvals`
    are rows asked for here, `approval_ends` what became of earlier ones; so are `operations` and `operation_ends`. `timers`
    are armed here, `resolved` those armed before that go; all of these are replaced, not changed, since most runs have none.
    """

    __slots__ = (
        "actions", "approval_ends", "approvals", "commit", "dropped", "ends", "fields", "index", "key", "operation_ends",
        "operations", "progress", "resolved", "sequence", "started", "timers",
    )  # fmt: skip

    def __init__(self, key: RunKey, progress: Progress) -> None:
        self.key = key
        self.progress = progress
        self.commit: Commit
        self.sequence = 0
        self.index = 0
        self.started: MessageRow | None = None
        self.fields: dict[str, Any] = {}
        self.actions: dict[str, ActionRow] = {}
        self.ends: dict[str, ActionEnd] = {}
        self.dropped: dict[str, None] = {}
        self.approvals = NO_ROWS
        self.approval_ends = NO_ENDS
        self.timers: Mapping[str, tuple[str, int, str]] = NO_TIMERS
        self.resolved: tuple[str, ...] = ()
        self.operations = NO_OPERATIONS
        self.operation_ends = NO_OUTCOMES

    @property
    def event_name(self) -> str:
        return f"{self.commit.version}.{self.index}"

    def begin_action(self, action: str, row: ActionRow) -> None:
        self.actions[action] = row
        if self.ends or self.dropped:
            self.ends.pop(action, None)
            self.dropped.pop(action, None)

    def end_action(self, action: str, end: ActionEnd) -> None:
        row = self.actions.get(action)
        if row is not None:
            row.end(end)
        else:
            self.ends[action] = end

    def drop_action(self, action: str) -> None:
        if self.actions.pop(action, None) is None:
            self.dropped[action] = None
        self.ends.pop(action, None)

    def ask_approval(self, approval: str, row: ApprovalRow) -> None:
        self.approvals = {**self.approvals, approval: row}

    def end_approval(self, approval: str, **columns: Any) -> None:
        end = self.approvals.get(approval) or self.approval_ends.get(approval)
        if end is None:
            end = ApprovalEnd()
            self.approval_ends = {**self.approval_ends, approval: end}
        for name, value in columns.items():
            setattr(end, name, value)


Handler = Callable[[RunChange, Any], None]
