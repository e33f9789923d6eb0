"""The lifecycle of a mail: the 12-state graph of the message pipeline (pipeline-spec, section 4, rows E1 to E24)."""

from typing import Any

import msgspec

from waybook.engine.aggregates.policy import KillSwitch
from waybook.engine.contract import Contract, NoContract
from waybook.engine.definition import KILL_SWITCH_ON, Row, Table
from waybook.engine.digest import canonical_digest
from waybook.engine.inputs import World
from waybook.engine.run import Run
from waybook.inbox import events as ev
from waybook.inbox.remarks import answer_address, remarks

STATES = (
    "received", "security_check", "quarantined", "classifying", "awaiting_clarification", "drafting",
    "draft_ready", "approved", "sent", "rejected", "archived", "failed",
)  # fmt: skip


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def _is_automated(run: Run, event: ev.MailReceived, world: World) -> bool:
    return event.mail.automated is not None


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


def _classification(event: ev.MailClassified | ev.SpamClassified | ev.NothingReadable) -> dict[str, Any]:
    """The main intent's labels, as the documents name them, with what the classifier said of the whole mail."""
    found = event.classification
    whole = {"language": found.language, "summary": found.summary, "intents": len(found.intents)}
    if found.only_quotes:
        whole["only_quotes"] = True
    fields = {"classification": {**_plain(found.main), **whole}, "confidence_score": found.confidence}
    return fields


def _classified(run: Run, event: ev.MailClassified) -> dict[str, Any]:
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


def _is_peoples_text(run: Run) -> bool:
    """Whether the working draft is what a person wrote or approved: no later draft takes its place."""
    return bool(run.fields.get("is_draft_edited")) or run.fields.get("approval_source") == "human"


def _drafted(run: Run, event: ev.DraftProposed) -> dict[str, Any]:
    draft = event.draft
    if _is_peoples_text(run):
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


def _auto_approved(run: Run, event: ev.AutoApproved) -> dict[str, Any]:
    return {**_decision(event), "approval_source": "auto"}


def _may_send(run: Run, event: ev.AutoApproved, world: World) -> bool:
    """A policy that was not read lets nothing go unattended."""
    return world.policy is not None and not world.policy.kill_switch.on


def _outranked(run: Run, event: ev.AutoApproved, world: World) -> bool:
    return _is_peoples_text(run)


def _for_person(run: Run, event: ev.AutoApproved) -> dict[str, Any]:
    routed = msgspec.structs.replace(
        event.routed, decision="human_review", reason="a person's text stands beside a new proposal", gate="human_text"
    )
    return {"agent_decision": _plain(routed)}


def _stopped(run: Run, event: ev.AutoApproved) -> dict[str, Any]:
    routed = msgspec.structs.replace(
        event.routed, decision="human_review", reason="the kill switch is on", gate="kill_switch"
    )
    return {"agent_decision": _plain(routed)}


def _approved(run: Run, event: ev.DraftApproved) -> dict[str, Any]:
    return {"approval_source": "human", "approved_by": event.by}


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
    """Every text that a person saved is kept; entry 0 is the agent's own. The same text again is no revision."""
    before = run.fields.get("draft_response")
    if event.text == before and event.subject in (None, run.fields.get("draft_subject")):
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
    return {**fields, "draft_subject": event.subject} if event.subject is not None else fields


def _saved_in_window(run: Run, event: ev.DraftSaved) -> dict[str, Any]:
    return {**_saved(run, event), "pending_auto_send": None, "approval_source": None, "cancel_reason": "edited"}


def _sent(run: Run, event: ev.ReplySent) -> dict[str, Any]:
    return {"pending_auto_send": None, "sent_message_id": event.message_id}


def _recalled(run: Run, event: ev.SendCancelled) -> dict[str, Any]:
    return {"pending_auto_send": None, "approval_source": None, "cancel_reason": event.reason}


def _not_begun(run: Run, event: KillSwitch, world: World) -> bool:
    """Whether surely no send of this run is out or on its way."""
    return all(operation.outcome in ("failed", "absent") for operation in run.operations.values())


def _turned_back(run: Run, event: KillSwitch) -> dict[str, Any]:
    return {"pending_auto_send": None, "approval_source": None, "cancel_reason": "kill_switch"}


def _failed(run: Run, event: Any) -> dict[str, Any]:
    return {"error_message": event.error.text}


def _send_failed(run: Run, event: ev.ReplyFailed) -> dict[str, Any]:
    return {"error_message": event.text, "failed_stage": "send"}


def _retried(run: Run, event: Any) -> dict[str, Any]:
    return {"error_message": None}


class _Author(msgspec.Struct, frozen=True):
    address: str = ""


class _Mail(msgspec.Struct, frozen=True):
    author: _Author | None = None
    message_id: str | None = None


class _Received(msgspec.Struct, frozen=True):
    """What a contract needs of the start event."""

    mail: _Mail = _Mail()


_start = msgspec.json.Decoder(_Received).decode


def reply_contract(run: Run) -> Contract | NoContract:
    """What a person approves in `draft_ready`: this reply, to the sender recorded at intake, word for word."""
    text = run.fields.get("draft_response")
    if not text:
        return NoContract("no_draft", "there is no draft to decide on")
    mail = _start(run.log[0].payload).mail
    to = mail.author.address if mail.author is not None else ""
    subject = run.fields.get("draft_subject") or ""
    reply = {"to": to, "subject": subject, "text": text, "in_reply_to": mail.message_id}
    return Contract(
        action="send",
        resource=f"mailto:{to}",
        digest=canonical_digest(reply),
        answers={"approved": ev.DraftApproved.__name__, "rejected": ev.DraftRejected.__name__},
        summary=f"reply to {to or 'an unknown sender'}: {subject}"[:200],
    )


ROWS = (
    Row("E2", "received", "MailReceived", "archived", guard=_is_automated, fields=_archive_automated),
    Row("E1", "received", "MailReceived", "security_check", fields=_received),
    Row("E3", "security_check", "ScanPassed", "classifying", fields=_flags),
    Row("agent_disabled", "security_check", "AgentDisabled", fields=_flags),
    Row("E4", "security_check", "ThreatFound", "quarantined", fields=_flags),
    Row("E5", "security_check", "SpamFound", "archived", fields=_spam),
    Row("E6", "quarantined", "MailReleased", "received", fields=_released, restart=True),
    Row("E7", "quarantined", "SenderBlocked", "archived", fields=_blocked),
    Row("context", "classifying", "ContextRetrieved", fields=_retrieved),
    Row("E8", "classifying", "MailClassified", "drafting", fields=_classified),
    Row("E9", "classifying", "NothingReadable", "draft_ready", fields=_unreadable),
    # Declared and legal; nothing drives this yet.
    Row("E10", "classifying", "", "awaiting_clarification"),
    Row("E11", "classifying", "SpamClassified", "archived", fields=_classified_spam),
    Row("E13", "awaiting_clarification", "ClarificationAnswered", "archived", guard=_is_dismissal, fields=_dismissed),
    Row("E12", "awaiting_clarification", "ClarificationAnswered", "drafting", fields=_answered),
    Row("draft", "drafting", "DraftProposed", fields=_drafted),
    Row("E14", "drafting", "ReviewRequested", "draft_ready", fields=_reviewed),
    # A person's text outranks a re-run: it stays, the new one is a proposal beside it, and nothing approves itself.
    Row("E14_outranked", "drafting", "AutoApproved", "draft_ready", guard=_outranked, fields=_for_person),
    # Asked when the decision is committed: the kill switch may have been turned since the gates agreed.
    Row("E15", "drafting", "AutoApproved", "approved", guard=_may_send, fields=_auto_approved, reads=("policy",)),
    Row("E14_stopped", "drafting", "AutoApproved", "draft_ready", fields=_stopped),
    Row("E16", "draft_ready", "DraftApproved", "approved", fields=_approved),
    Row("E17", "draft_ready", "DraftRejected", "rejected", fields=_rejected),
    Row("E18", "draft_ready", "SenderBlocked", "archived", fields=_blocked),
    Row("save", "draft_ready", "DraftSaved", fields=_saved),
    # An edit takes the approval back, also within the undo window.
    Row("E20_edit", "approved", "DraftSaved", "draft_ready", fields=_saved_in_window),
    Row("E19", "approved", "ReplySent", "sent", fields=_sent),
    Row("E20", "approved", "SendCancelled", "draft_ready", fields=_recalled),
    Row(
        "E20_stopped",
        "approved",
        KILL_SWITCH_ON,
        "draft_ready",
        guard=_not_begun,
        fields=_turned_back,
        reads=("policy",),
    ),
    Row("F_send", "approved", "ReplyFailed", "failed", fields=_send_failed),
    Row("E21", "failed", "RetryRequested", "received", fields=_retried),
    Row("F", "*", "StepFailed", "failed", fields=_failed),
    Row("A", "*", "SenderBlocked", "archived", fields=_blocked),
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
    contracts={"draft_ready": reply_contract},
)
