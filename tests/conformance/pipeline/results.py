"""Results of steps and acts of people, as the product's typed events.

What a case gives as the output of a step's work goes through the step's own pure route, as in the product.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.messages import CLASSIFICATION, QUALITY
from tests.conformance.pipeline.names import to_product

from waybook.engine.definition import Row
from waybook.events.typed import Event
from waybook.inbox import events as ev
from waybook.inbox.agent import route_classification, route_decision, route_draft, route_scan, sender_address
from waybook.inbox.classify import Classification, apply_rules, read_classification
from waybook.inbox.context import Context, Coverage, count_tokens
from waybook.inbox.draft import Draft, Quality
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.route import Routed
from waybook.inbox.scan.findings import ScanResult, SecurityFlags
from waybook.inbox.scan.scan import read_mail
from waybook.inbox.settings import InboxSettings

Given = Mapping[str, Any]
REMARKS = frozenset({"modelUsed", "tokenUsage"})


class StartEvent(msgspec.Struct, frozen=True):
    """What starts a run."""

    event: ev.MailReceived
    thread: str | None
    configuration: dict[str, Any]


# --- outputs of a step's work


def from_output(
    step: str, output: Any, arguments: Mapping[str, Any], settings: InboxSettings, now: int
) -> Event | list[ev.SeveralIntents | ev.IntentFound]:
    """The event that the step's own route makes of what its work returns. Raises what the product raises for it."""
    given = {} if output is None else to_product(dict(output))
    mail: ParsedMail | None = arguments["mail"].mail if "mail" in arguments else None
    if step == "security_scan":
        return route_scan(_scan_result(given, mail, now))
    if step == "context_retrieval":
        return ev.ContextRetrieved(context=_context(given))
    if step == "classify":
        sender, subject = (sender_address(mail), mail.subject) if mail is not None else ("", "")
        read = read_classification({k: v for k, v in given.items() if k not in to_product(dict.fromkeys(REMARKS))})
        return route_classification(apply_rules(read, settings.rules, sender=sender, subject=subject))
    if step == "draft":
        found = arguments["found"] if "found" in arguments else ev.MailClassified(classification=main({}))
        return route_draft(found, _draft(given))
    if step == "route":
        return route_decision(msgspec.convert({"reason": "", **given}, Routed))
    raise Unsupported(f"the output of {step} is not interpreted")


def _scan_result(given: Given, mail: ParsedMail | None, now: int) -> ScanResult:
    flags = SecurityFlags(
        injection_detected=given["is_injection"],
        confidence=given["max_confidence"],
        spam_score=given.get("spam_score", 0),
        phishing_detected=given.get("phishing_detected", False),
        guard_unavailable=given.get("guard_unavailable", False),
        scan_timestamp=now,
    )
    known = {k: v for k, v in given.items() if k in ScanResult.__struct_fields__}
    text = read_mail(mail).text if mail is not None else ""
    return msgspec.convert({**known, "security_flags": msgspec.to_builtins(flags), "text": text}, ScanResult)


def _context(given: Given) -> Context:
    text = str(given.get("text", given.get("context", "")))
    coverage = msgspec.convert(given.get("coverage") or {}, Coverage)
    sources = tuple(given.get("grounding_sources") or ())
    return Context(
        text=text,
        tier=given.get("tier", "normal"),
        tokens=count_tokens(text),
        coverage=coverage,
        grounding_sources=sources,
    )


def _draft(given: Given) -> Draft:
    quality = given.get("quality")
    options = given.get("options")
    return Draft(
        text=given.get("text"),
        subject=given.get("subject") or "Re: Question",
        quality=msgspec.convert(quality, Quality) if quality is not None else None,
        options=tuple(options) if options else None,
    )


def main(given: Given) -> Classification:
    """A classification of one intent: the given labels, else the default ones."""
    labels = {**CLASSIFICATION, **given}
    return read_classification(to_product({k: v for k, v in labels.items() if k not in REMARKS}))


# --- arranged history


def arranged(step: str, given: Given, row: Row | None, given_row: Given | None, mail: ParsedMail, at: int) -> Event:
    """The event that a completed step of the arranged history has returned; `row` is the way that the run goes on."""
    output = _given_output(given_row)
    if step == "security_scan":
        return _arranged_scan(row, {**(given.get("securityFlags") or {}), **output}, mail, at)
    if step == "context_retrieval":
        text = f"Subject: {mail.subject}\n\n{read_mail(mail).text}"
        return ev.ContextRetrieved(
            context=_context(to_product({"text": text, "coverage": given.get("contextCoverage"), **output}))
        )
    if step == "classify":
        classification = main({**(given.get("classification") or {}), **output})
        if row is not None and row.name == "E11":
            return ev.SpamClassified(
                classification=classification, reason=given.get("archiveReason") or "classifier_spam"
            )
        return ev.MailClassified(classification=classification)
    if step == "draft":
        return ev.DraftProposed(
            draft=_arranged_draft(given, output), classification=main(given.get("classification") or {})
        )
    return _arranged_decision(row)


def _given_output(row: Given | None) -> dict[str, Any]:
    if row is None or row.get("output") is None:
        return {}
    output = row["output"]
    return dict(msgspec.json.decode(output) if isinstance(output, str) else output)


def _arranged_scan(row: Row | None, given: Given, mail: ParsedMail, at: int) -> Event:
    name = row.name if row is not None else "E3"
    flags = msgspec.convert({"scan_timestamp": at, "guard_configured": True, **to_product(given)}, SecurityFlags)
    if name == "E4":
        return ev.ThreatFound(flags=flags)
    if name == "E5":
        return ev.SpamFound(flags=flags)
    return ev.ScanPassed(flags=flags, text=read_mail(mail).text)


def _arranged_draft(given: Given, output: Given) -> Draft:
    quality = given.get("draftQuality", output.get("quality", QUALITY))
    draft = {
        "text": output.get("text") or given.get("draftResponse"),
        "subject": given.get("draftSubject"),
        "quality": quality,
        "options": given.get("draftOptions"),
    }
    return _draft(to_product(draft))


def _arranged_decision(row: Row | None) -> Event:
    approved = row is not None and row.name == "E15"
    return route_decision(Routed(decision="auto_approve" if approved else "human_review", reason="arranged"))


def fields_of(event: Event) -> dict[str, Any]:
    """The fields that a classification brings where no row of the table asks for it (E9, E10)."""
    if not isinstance(event, ev.MailClassified):
        return {}
    found = event.classification
    return {"classification": msgspec.to_builtins(found.main), "confidence_score": found.confidence}


def from_outside(row: Row, given: Given) -> Event | None:
    """A person's word that takes this row; None where a direct call stands for it."""
    if row.on == "DraftApproved":
        return ev.DraftApproved(by=given.get("userId") or "u1")
    if row.on == "DraftRejected":
        return ev.DraftRejected(by=given.get("userId") or "u1", reason=given.get("rejectReason"))
    return None


def row_fields(row: Row, given: Given) -> dict[str, Any]:
    """Given fields that are written with a transition to that state."""
    if row.next == "failed":
        return {"error_message": given.get("errorMessage"), "failed_stage": given.get("failedStage")}
    if row.next == "archived":
        return {"archive_reason": given.get("archiveReason")}
    if row.next == "awaiting_clarification":
        return {"pending_clarification": to_product(given.get("pendingClarification"))}
    return {}
