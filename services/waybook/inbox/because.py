"""How a mail came to stand where it stands, in a sentence for people: whose decision it was, and why."""

from collections.abc import Callable, Mapping
from typing import Any

from waybook.engine.run import Run
from waybook.engine.times import iso
from waybook.engine.windows import pending

_BACK = {
    "kill_switch": "the kill switch was on",
    "thread_reply": "a newer mail of the conversation came in",
    "edited": "the text was changed after the approval",
    "user_cancel": "a person called it back",
    "policy_changed": "the policy changed after the approval",
    "expired": "the approval had run out",
    "grant_gone": "who approved it may not decide any more",
    "not_arrived": "a person said that it did not arrive",
    "reservation_gone": "what it was charged to counts it no longer",
    "review": "a person wants to see it after a failure",
}


def why_quarantined(run: Run) -> str | None:
    """The surest finding of the scan."""
    found = (run.fields.get("security_flags") or {}).get("findings") or ()
    surest = max(found, key=lambda f: float(f["confidence"]), default=None)
    return f"the scan found {surest['kind']}: {surest['name']}" if surest is not None else None


def why_draft_ready(run: Run) -> str | None:
    """Why a person decides: what called the reply back, else what kept it from leaving unattended."""
    called_back = run.fields.get("cancel_reason")
    if called_back is not None:
        return f"it came back before it left: {_BACK.get(called_back, called_back)}"
    return _decision(run)


def _decision(run: Run) -> str | None:
    decision = run.fields.get("agent_decision") or {}
    return f"{decision['reason']} ({decision.get('gate')})" if decision.get("reason") else None


def why_approved(run: Run) -> str | None:
    """Who let it go, and until when it can be called back, or that it is on its way."""
    timer = pending(run)
    now = f"it can be called back until {iso(run.timers[timer].due)}" if timer is not None else "it is on its way"
    return f"{_let_go(run)}; {now}"


def _let_go(run: Run) -> str:
    """Whose word lets the reply leave."""
    if run.fields.get("approval_source") != "human":
        return f"unattended: {(run.fields.get('agent_decision') or {}).get('reason', 'no gate objected')}"
    decided = [a.decided for a in run.approvals.values() if a.decided is not None and a.decided.decision == "approved"]
    if not decided:
        return f"approved by {run.fields.get('approved_by') or 'a person'}"
    return f"approved by {decided[-1].by}" + (f": {decided[-1].reason}" if decided[-1].reason else "")


def why_failed(run: Run) -> str | None:
    """What went wrong last; of several things that a mail asks for, what the failed drafts are about."""
    text = run.fields.get("error_message")
    asks = (run.fields.get("classification") or {}).get("asks") or ()
    failed = {a.branch for a in map(run.actions.__getitem__, run.executions.values()) if a.status == "failed"}
    about = "; ".join(f"part {n} is about: {title}" for n, title in enumerate(asks, 1) if str(n) in failed)
    return f"{text} ({about})" if text and about else str(text) if text else None


def why_rejected(run: Run) -> str | None:
    """Who refused the draft."""
    reason = run.fields.get("reject_reason")
    return f"rejected by {run.fields.get('rejected_by') or 'a person'}" + (f": {reason}" if reason else "")


def why_archived(run: Run) -> str | None:
    """Why it was put away, and by whom where a person did it."""
    reason = run.fields.get("automated") or run.fields.get("archive_reason")
    by = run.fields.get("blocked_by")
    return f"{reason}, by {by}" if reason and by else reason


BECAUSE: Mapping[str, Callable[[Run], Any]] = {
    "quarantined": why_quarantined,
    "draft_ready": why_draft_ready,
    "approved": why_approved,
    "sent": _let_go,
    "rejected": why_rejected,
    "archived": why_archived,
    "failed": why_failed,
}
"""By state."""
