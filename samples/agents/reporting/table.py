"""The lifecycle of a report. A step says what happened; this table says what that means."""

from typing import Any

import msgspec
from samples.agents.reporting.events import ReportApproved, ReportExpired, ReportGenerated, ReportRejected
from samples.agents.reporting.mail import EFFECT, mail_of

from waybook.agents import Row, Table
from waybook.engine.contract import Contract
from waybook.engine.digest import canonical_digest
from waybook.engine.run import Run
from waybook.events.engine import StepFailed

DECIDE_WITHIN_MS = 7 * 24 * 3600 * 1000


def _generated(run: Run, event: ReportGenerated) -> dict[str, Any]:
    return {"report": msgspec.to_builtins(event)}


def _approved(run: Run, event: ReportApproved) -> dict[str, Any]:
    return {"approved_by": event.by, "approved_at": event.received_at}


def _rejected(run: Run, event: ReportRejected) -> dict[str, Any]:
    return {"error_message": f"rejected by {event.by}: {event.reason or 'no reason given'}"}


def _expired(run: Run, event: ReportExpired) -> dict[str, Any]:
    return {"error_message": "nobody decided in time"}


def _failed(run: Run, event: StepFailed) -> dict[str, Any]:
    return {"error_message": event.error.text}


def release(run: Run) -> Contract:
    """What people approve while a run is in `approval_pending`: exactly this report, to exactly these people."""
    report = msgspec.convert(run.fields["report"], ReportGenerated)
    return Contract(
        action=EFFECT,
        resource=f"report:{report.topic}",
        digest=canonical_digest(mail_of(report)),
        within_ms=DECIDE_WITHIN_MS,
        answers={
            "approved": ReportApproved.__name__,
            "rejected": ReportRejected.__name__,
            "expired": ReportExpired.__name__,
        },
        summary=f"report {report.sha256[:12]} on {report.topic} to {', '.join(report.recipients)}",
    )


TABLE = Table(
    initial="init",
    states=frozenset(
        {"init", "query_running", "report_generating", "approval_pending", "email_sending", "completed", "failed",
         "cancelled"}
    ),
    terminal=frozenset({"completed", "cancelled"}),
    rows=(
        Row("ask", "init", "ReportAsked", "query_running"),
        Row("query", "query_running", "QueryCompleted", "report_generating"),
        Row("generate", "report_generating", "ReportGenerated", "approval_pending", fields=_generated),
        Row("approve", "approval_pending", "ReportApproved", "email_sending", fields=_approved),
        Row("reject", "approval_pending", "ReportRejected", "failed", fields=_rejected),
        Row("expire", "approval_pending", "ReportExpired", "failed", fields=_expired),
        Row("send", "email_sending", "EmailSent", "completed"),
        # What was approved holds no more: back to where it is asked for.
        Row("lapse", "email_sending", "ApprovalLapsed", "approval_pending"),
        # A person wants another report, which has to be approved like the first.
        Row("revise", "approval_pending", "ReportRevised", "report_generating"),
        Row("revise_failed", "failed", "ReportRevised", "report_generating"),
        # A failure keeps all that was done: a retry leads back to the state in which it happened.
        Row("fail", "*", "StepFailed", "failed", fields=_failed),
        Row("retry", "failed", "RetryRequested", "init"),
        Row("cancel", "*", "CancelRequested", "cancelled"),
    ),
    waits={"approval_pending": "approval"},
    contracts={"approval_pending": release},
)  # fmt: skip
