"""The lifecycle of a mail: the 12-state graph of the message pipeline (pipeline-spec, section 4, rows E1 to E24)."""

from typing import Any

import msgspec

from waybook.engine.definition import Row, Table
from waybook.engine.inputs import World
from waybook.engine.run import Run
from waybook.engine.telling import Telling
from waybook.inbox import approved, redraft, returned
from waybook.inbox import events as ev
from waybook.inbox.because import BECAUSE
from waybook.inbox.intake.headers import one_line
from waybook.inbox.judged import tell_rejected
from waybook.inbox.remarks import answer_address, remarks
from waybook.inbox.reply import EFFECT

STATES = (
    "received", "security_check", "quarantined", "classifying", "awaiting_clarification", "drafting",
    "draft_ready", "approved", "sent", "rejected", "archived", "failed",
)  # fmt: skip


SENDER_BLOCKED = "sender_blocked"
"""The flag of a start whose sender is blocked, and the reason why such a mail is archived."""


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def _is_automated(run: Run, event: ev.MailReceived, world: World) -> bool:
    return event.mail.automated is not None


def _is_report(run: Run, event: ev.MailReceived, world: World) -> bool:
    """A report that one of our replies came to a bad end."""
    return event.mail.automated is not None and returned.is_bad_end(event.mail.delivery)


def _is_blocked(run: Run, event: ev.MailReceived, world: World) -> bool:
    """A person blocked its sender before it came."""
    return SENDER_BLOCKED in run.flags


def _archive_blocked(run: Run, event: ev.MailReceived) -> dict[str, Any]:
    return {"archive_reason": SENDER_BLOCKED, **_received(run, event)}


def _archive_automated(run: Run, event: ev.MailReceived) -> dict[str, Any]:
    return {"archive_reason": "automated", "automated": event.mail.automated, **_received(run, event)}


def _received(run: Run, event: ev.MailReceived) -> dict[str, Any]:
    """Only what there is: most mails are ordinary."""
    fields: dict[str, Any] = {"answer_to": answer_address(event.mail)}
    if found := remarks(event):
        fields["remarks"] = found
    return fields


def _flags(run: Run, event: ev.ScanPassed | ev.ThreatFound | ev.AgentDisabled) -> dict[str, Any]:
    return {"security_flags": _plain(event.flags)}


def _spam(run: Run, event: ev.SpamFound) -> dict[str, Any]:
    return {"security_flags": _plain(event.flags), "archive_reason": "spam"}


def _classification(
    event: ev.MailClassified | ev.SeveralIntents | ev.SpamClassified | ev.NothingReadable,
) -> dict[str, Any]:
    """The main intent's labels, as the documents name them, with what the classifier said of the whole mail."""
    found = event.classification
    whole: dict[str, Any] = {"language": found.language, "summary": found.summary, "intents": len(found.intents)}
    if found.only_quotes:
        whole["only_quotes"] = True
    if len(found.intents) > 1:
        whole["asks"] = [intent.title for intent in found.intents]
    fields = {"classification": {**_plain(found.main), **whole}, "confidence_score": found.confidence}
    return fields


def _classified(run: Run, event: ev.MailClassified | ev.SeveralIntents) -> dict[str, Any]:
    return _classification(event)


def _classified_spam(run: Run, event: ev.SpamClassified) -> dict[str, Any]:
    return {**_classification(event), "archive_reason": event.reason}


def _unreadable(run: Run, event: ev.NothingReadable) -> dict[str, Any]:
    return {**_classification(event), "agent_decision": _plain(event.routed)}


def _retrieved(run: Run, event: ev.ContextRetrieved) -> dict[str, Any]:
    found = event.context
    return {
        "context_tier": found.tier,
        "context_coverage": _plain(found.coverage),
        "grounding_sources": list(found.grounding_sources),
    }


def _drafted(run: Run, event: ev.DraftProposed) -> dict[str, Any]:
    draft = event.draft
    if approved.holds_human_text(run):
        return {"draft_proposal": {"text": draft.text, "subject": draft.subject, "quality": _plain(draft.quality)}}
    return {
        "draft_response": draft.text,
        "draft_subject": draft.subject,
        "draft_quality": _plain(draft.quality),
        "draft_options": _plain(draft.options),
    }


def _decision(event: ev.ReviewRequested | ev.AutoApproved) -> dict[str, Any]:
    return {"agent_decision": _plain(event.routed)}


def _reviewed(run: Run, event: ev.ReviewRequested) -> dict[str, Any]:
    return _decision(event)


def _released(run: Run, event: ev.MailReleased) -> dict[str, Any]:
    return {"security_flags": None, "error_message": None, "released_by": event.by, "step_flags": ["released"]}


def _rejected(run: Run, event: ev.DraftRejected) -> dict[str, Any]:
    return {"rejected_by": event.by, "reject_reason": event.reason}


def _blocked(run: Run, event: ev.SenderBlocked) -> dict[str, Any]:
    return {"archive_reason": event.reason, "blocked_by": event.by}


def _answered(run: Run, event: ev.ClarificationAnswered) -> dict[str, Any]:
    return {"clarification_answers": event.answers}


def _dismissed(run: Run, event: ev.ClarificationAnswered) -> dict[str, Any]:
    return {"archive_reason": "clarification_dismissed"}


def _is_dismissal(run: Run, event: ev.ClarificationAnswered, world: World) -> bool:
    return event.dismissed


def _saved(run: Run, event: ev.DraftSaved) -> dict[str, Any]:
    """Every text that a person saved is kept; entry 0 is the agent's own. The same text again is no revision.

    A subject is one line, whatever was pasted into it: two would be no header, and the reply could not leave.
    """
    before = run.fields.get("draft_response")
    subject = one_line(event.subject) if event.subject is not None else None
    if event.text == before and subject in (None, run.fields.get("draft_subject")):
        return {}
    revisions = list(run.fields.get("draft_revisions") or ())
    if not revisions and before is not None:
        revisions.append({"text": before, "saved_by": "agent"})
    revisions.append({"text": event.text, "saved_by": event.by})
    fields = {
        "draft_response": event.text,
        "draft_revisions": revisions,
        "is_draft_edited": True,
        "draft_saved_at": event.saved_at,
    }
    return {**fields, "draft_subject": subject} if subject is not None else fields


def _saved_in_window(run: Run, event: ev.DraftSaved) -> dict[str, Any]:
    return {**_saved(run, event), **approved.back("edited")}


def _tell_blocked(run: Run, event: ev.SenderBlocked, now: int) -> list[Telling]:
    """Intake learns it; and what was charged for a reply that does not leave now counts no more."""
    charged = approved.give_back(run, event, now) if run.state == "approved" else ()
    return [*returned.tell_blocked(run, event, now), *charged]


def _failed(run: Run, event: Any) -> dict[str, Any]:
    return {"error_message": event.error.text}


def _retried(run: Run, event: Any) -> dict[str, Any]:
    return {"error_message": None, "failed_stage": None}


ROWS = (
    Row("E2_blocked", "received", "MailReceived", "archived", guard=_is_blocked, fields=_archive_blocked),
    Row(
        "E2_report", "received", "MailReceived", "archived", _is_report, _archive_automated, tells=returned.tell_replied
    ),
    Row("E2", "received", "MailReceived", "archived", guard=_is_automated, fields=_archive_automated),
    Row("E1", "received", "MailReceived", "security_check", fields=_received),
    Row("E3", "security_check", "ScanPassed", "classifying", fields=_flags),
    Row("agent_disabled", "security_check", "AgentDisabled", fields=_flags),
    Row("E4", "security_check", "ThreatFound", "quarantined", fields=_flags),
    Row("E5", "security_check", "SpamFound", "archived", fields=_spam),
    Row("E6", "quarantined", "MailReleased", "received", fields=_released, restart=True),
    Row("E7", "quarantined", "SenderBlocked", "archived", fields=_blocked, tells=returned.tell_blocked),
    Row("context", "classifying", "ContextRetrieved", fields=_retrieved),
    Row("E8", "classifying", "MailClassified", "drafting", fields=_classified),
    Row("E8_several", "classifying", "SeveralIntents", "drafting", fields=_classified),
    Row("E9", "classifying", "NothingReadable", "draft_ready", fields=_unreadable),
    # Declared and legal; nothing drives this yet.
    Row("E10", "classifying", "", "awaiting_clarification"),
    Row("E11", "classifying", "SpamClassified", "archived", fields=_classified_spam),
    Row("E13", "awaiting_clarification", "ClarificationAnswered", "archived", guard=_is_dismissal, fields=_dismissed),
    Row("E12", "awaiting_clarification", "ClarificationAnswered", "drafting", fields=_answered),
    Row("draft", "drafting", "DraftProposed", fields=_drafted),
    Row("E14", "drafting", "ReviewRequested", "draft_ready", fields=_reviewed),
    *approved.APPROVING,
    Row("E17", "draft_ready", "DraftRejected", "rejected", fields=_rejected, tells=tell_rejected),
    Row("E18", "draft_ready", "SenderBlocked", "archived", fields=_blocked, tells=returned.tell_blocked),
    Row("save", "draft_ready", "DraftSaved", fields=_saved),
    redraft.ROW,
    # An edit takes the approval back, also within the undo window.
    Row(
        "E20_edit",
        "approved",
        "DraftSaved",
        "draft_ready",
        approved.in_window,
        _saved_in_window,
        tells=approved.give_back,
    ),
    *approved.SENDING,
    Row("E21", "failed", "RetryRequested", "received", approved.is_repeat, _retried),
    approved.REDRAFT,
    Row("F", "*", "StepFailed", "failed", fields=_failed),
    Row("A", "*", "SenderBlocked", "archived", fields=_blocked, tells=_tell_blocked),
    Row("returned", "*", "ReplyReturned", None, returned.is_news, returned.returned, tells=returned.tell_outcome),
)

TABLE = Table(
    initial="received",
    states=frozenset(STATES),
    terminal=frozenset({"sent", "rejected", "archived"}),
    rows=ROWS,
    waits={
        "security_check": "agent_disabled",
        "quarantined": "release",
        "awaiting_clarification": "answer",
        "draft_ready": "approval",
        "approved": "send",
    },
    contracts={"draft_ready": approved.reply_contract},
    windows={"approved": approved.WINDOW},
    intents={EFFECT: approved.GUARD},
    because=BECAUSE,
    facts=frozenset({ev.ReplyReturned.__name__}),
    refusals={
        "SendCancelled": approved.why_no_undo,
        "DraftSaved": approved.why_no_save,
        "MailReleased": approved.why_no_release,
        "RedraftAsked": redraft.why_not,
    },
)
