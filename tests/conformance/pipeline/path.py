"""The shortest legal way over the lifecycle table to a given state, by way of what the given fields need."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.names import STATE_OF_STEP

from waybook.engine.definition import FAILED, Row, Table

ORDER = (
    "received", "security_check", "quarantined", "classifying", "awaiting_clarification", "drafting",
    "draft_ready", "approved", "sent", "rejected", "archived", "failed",
)  # fmt: skip

AFTER_SCAN = frozenset({"securityFlags"})
AFTER_CLASSIFY = frozenset({"classification", "confidenceScore"})
AFTER_DRAFT = frozenset(
    {"draftResponse", "draftSubject", "draftOptions", "draftQuality", "agentDecision", "isAutoSendBlocked"}
    | {"draftRevisions", "draftSavedAt", "isDraftEdited", "draftHtml", "attachmentSuggestions"}
)


def way(table: Table, start: str, target: str) -> list[Row]:
    """The rows of the shortest way from one state to another; Unsupported when there is none.

    Rows for every state lead to `failed` and `archived` only; a retry's reset is no way of going on.
    """
    came: dict[str, tuple[str, Row] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        if state == target:
            return _back(came, target)
        for row in table.rows:
            leads = row.next is not None and row.state in (state, "*") and state not in table.terminal
            if leads and row.next not in came and not _is_detour(row, state, target):
                assert row.next is not None
                came[row.next] = (state, row)
                queue.append(row.next)
    raise Unsupported(f"no legal way leads from {start} to {target}")


def _is_detour(row: Row, state: str, target: str) -> bool:
    ends_elsewhere = row.next in (FAILED, "archived") and row.next != target
    return ends_elsewhere or (state == FAILED and row.next == "received")


def _back(came: Mapping[str, tuple[str, Row] | None], target: str) -> list[Row]:
    rows: list[Row] = []
    state = target
    while (step := came[state]) is not None:
        state, row = step
        rows.append(row)
    return rows[::-1]


def waypoints(given: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], target: str) -> list[str]:
    """States that the history passes before `target`, because a given field or row comes about there."""
    passed: set[str] = {STATE_OF_STEP[row["kind"]] for row in rows if row["kind"] in STATE_OF_STEP}
    filled = {key for key, value in given.items() if value is not None}
    if filled & AFTER_SCAN:
        passed.add("security_check")
    if filled & AFTER_CLASSIFY:
        passed.add("classifying")
    if filled & AFTER_DRAFT:
        passed.add("drafting")
    if "approvalSource" in filled or target in ("approved", "sent"):
        passed |= _approval(given, target)
    passed.discard(target)
    return sorted(passed & set(_before(target)), key=ORDER.index)


def _approval(given: Mapping[str, Any], target: str) -> set[str]:
    states = {"approved"} if target in ("approved", "sent", "archived", "failed") else set()
    if given.get("approvalSource") != "auto" and target != "sent":
        states.add("draft_ready")
    return states


def _before(target: str) -> tuple[str, ...]:
    """States from which a history can still come to `target` without starting again."""
    if target in ("archived", "failed", "rejected", "sent"):
        return ORDER
    return ORDER[: ORDER.index(target)]
