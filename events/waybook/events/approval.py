"""The events of approvals: asked for, decided, used, taken back."""

from typing import Literal

from waybook.events.fact import Fact


class ApprovalRequested(Fact, frozen=True, kw_only=True):
    """A sealed contract is put before people: this action, on this resource, with this digest, until `expires`.

    `digest` is that of the canonical parameters. `deciders` empty: whoever holds the grant. `policy` is the version
    that was known when it was asked, 0: none; the one that counts is that of the decision. `answers` names, by
    decision (approved, rejected, expired), the typed event that tells the run. `summary` is for people.
    """

    action: str
    resource: str
    scope: str
    digest: str
    requester: str
    deciders: tuple[str, ...]
    expires: int | None
    policy: int
    answers: dict[str, str] = {}
    summary: str | None = None


class ApprovalDecided(Fact, frozen=True, kw_only=True):
    """A person decided; `received_at` is the receipt time of the command, never a worker's clock.

    `policy` and `grants` are the versions of those aggregates by which the decision was allowed.
    """

    approval: str
    decision: Literal["approved", "rejected"]
    by: str
    received_at: int
    policy: int
    grants: int
    reason: str | None = None


class ApprovalUsed(Fact, frozen=True, kw_only=True):
    """Stands in the same commit as the intent of the operation that it covers."""

    approval: str
    operation: str


class ApprovalRevoked(Fact, frozen=True, kw_only=True):
    """An edit, a policy or the kill switch took an approval back."""

    approval: str
    reason: str
