"""What a stored commit means to whoever counts."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from waybook.engine.approvals import EXPIRED
from waybook.engine.hooks import ApprovalMoved, CommitStored, Hook, StepEnded
from waybook.engine.run import Action, Run
from waybook.events.commit import Commit
from waybook.events.engine import (
    ActionAbandoned,
    ActionReleased,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalRevoked,
    ApprovalUsed,
    StepCompleted,
    StepFailed,
)

log = logging.getLogger(__name__)

_Actions = Mapping[str, Action]


def _completed(agent: str, event: StepCompleted, actions: _Actions) -> StepEnded:
    return StepEnded(agent, actions[event.action].step, "completed", event.duration_ms)


def _failed(agent: str, event: StepFailed, actions: _Actions) -> StepEnded:
    return StepEnded(agent, event.step, "exhausted" if event.exhausted else "failed", event.duration_ms)


def _abandoned(agent: str, event: ActionAbandoned, actions: _Actions) -> StepEnded:
    return StepEnded(agent, actions[event.action].step, "abandoned")


def _released(agent: str, event: ActionReleased, actions: _Actions) -> StepEnded:
    return StepEnded(agent, actions[event.action].step, "released")


def _revoked(agent: str, event: ApprovalRevoked, actions: _Actions) -> ApprovalMoved:
    if event.reason != EXPIRED:
        return ApprovalMoved(agent, "revoked")
    extra = {"action": "approval_expired", "agent": agent, "approval": event.approval}
    log.warning("nobody decided on an approval, or used it, in time", extra=extra)
    return ApprovalMoved(agent, "expired")


_ENDS: Mapping[type, Callable[[str, Any, _Actions], StepEnded | ApprovalMoved]] = {
    StepCompleted: _completed,
    StepFailed: _failed,
    ActionAbandoned: _abandoned,
    ActionReleased: _released,
    ApprovalRequested: lambda agent, event, actions: ApprovalMoved(agent, "requested"),
    ApprovalDecided: lambda agent, event, actions: ApprovalMoved(agent, event.decision),
    ApprovalUsed: lambda agent, event, actions: ApprovalMoved(agent, "used"),
    ApprovalRevoked: _revoked,
}


def tell_stored(hook: Hook, commit: Commit, after: Run, size: int, took_s: float) -> None:
    """Tells the commit, the end of every attempt in it, and what became of approvals. `after` is the run with the commit."""
    agent = after.key.agent
    hook(CommitStored(agent, len(commit.events), size, took_s))
    for event in commit.events:
        kind = type(event)
        if kind in _ENDS:
            hook(_ENDS[kind](agent, event, after.actions))
