"""The typed events of the `inbox` agent."""

from typing import Any

import msgspec

from waybook.events.typed import Event, ExternalEvent, StartEvent


class ObjectReference(msgspec.Struct, frozen=True):
    """A payload kept in the bucket `artifacts`: its object name, SHA-256 in hexadecimal, size in bytes."""

    name: str
    sha256: str
    size: int


class Attachment(msgspec.Struct, frozen=True):
    """A part of the mail that is no text of it."""

    name: str
    content_type: str
    size: int
    sha256: str
    object: ObjectReference | None = None


class MailReceived(StartEvent, frozen=True, kw_only=True):
    """A mail, as intake read it. Long texts are cut at 64 KiB; `text_object` and `html_object` hold them whole.

    `sender` is the From header for people, `sender_address` the bare address. `automated` says why it is never
    answered, None when it is an ordinary mail. `defects` are intake's remarks on what was wrong with it.
    """

    sender: str
    sender_address: str
    subject: str
    text: str
    html: str | None = None
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    reply_to: str | None = None
    date: str | None = None
    message_id: str | None = None
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    attachments: tuple[Attachment, ...] = ()
    text_object: ObjectReference | None = None
    html_object: ObjectReference | None = None
    automated: str | None = None
    defects: tuple[str, ...] = ()
    received_at: int | None = None


class SecurityFlags(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the scan found (pipeline-spec 2). Confidences are 0..1, the spam score 0..100."""

    injection_detected: bool
    confidence: float
    scan_timestamp: int
    injection_type: str | None = None
    flagged_content: str | None = None
    spam_score: int = 0
    phishing_detected: bool = False
    guard_unavailable: bool = False


class ScanPassed(Event, frozen=True, kw_only=True):
    """The scan found nothing that stops the mail."""

    flags: SecurityFlags


class ThreatFound(Event, frozen=True, kw_only=True):
    """An injection (confidence from 0.7) or a malicious link."""

    flags: SecurityFlags


class SpamFound(Event, frozen=True, kw_only=True):
    """A spam score from 80."""

    flags: SecurityFlags


class ContextRetrieved(Event, frozen=True, kw_only=True):
    """What is known around the mail, within the token budget. `tier`: normal, compacted or emergency."""

    text: str
    tier: str
    coverage: dict[str, Any] = {}
    grounding_sources: tuple[str, ...] = ()


class Classification(msgspec.Struct, frozen=True):
    """One intent of a mail (pipeline-spec 7.3)."""

    category: str
    priority: str
    sentiment: str
    intent: str
    confidence: float
    language: str | None = None


class MailClassified(Event, frozen=True, kw_only=True):
    """The mail is to be answered."""

    classification: Classification


class SpamClassified(Event, frozen=True, kw_only=True):
    """The classifier takes the mail for spam, or a rule of the owner archives it (`reason`)."""

    classification: Classification
    reason: str = "classifier_spam"


class DraftQuality(msgspec.Struct, frozen=True):
    """The self-check's judgement of a draft."""

    score: float
    complete: bool
    grounded: bool
    flags: tuple[str, ...] = ()


class DraftProposed(Event, frozen=True, kw_only=True):
    """A reply. It carries what `route` weighs, so nothing is read from a shared record."""

    text: str
    subject: str
    classification: Classification
    quality: DraftQuality | None = None
    options: tuple[str, ...] = ()


class ReviewRequested(Event, frozen=True, kw_only=True):
    """A person decides; `reason` names the first objection."""

    reason: str
    confidence: float | None = None


class AutoApproved(Event, frozen=True, kw_only=True):
    """Every gate agrees to an unattended reply."""

    reason: str
    confidence: float


class MailReleased(ExternalEvent, frozen=True, kw_only=True):
    """An administrator releases a quarantined mail."""

    by: str
    reason: str | None = None


class SenderBlocked(ExternalEvent, frozen=True, kw_only=True):
    """A person blocks the sender; the mail is archived."""

    by: str
    reason: str = "sender_blocked"


class ClarificationAnswered(ExternalEvent, frozen=True, kw_only=True):
    """The owner answers, or dismisses, the open questions."""

    by: str
    answers: dict[str, str] = {}
    dismissed: bool = False


class DraftApproved(ExternalEvent, frozen=True, kw_only=True):
    """A person approves the draft."""

    by: str


class DraftRejected(ExternalEvent, frozen=True, kw_only=True):
    """A person refuses the draft."""

    by: str
    reason: str | None = None


class SendCancelled(ExternalEvent, frozen=True, kw_only=True):
    """A pending send is called back for review."""

    by: str
    reason: str = "user_cancel"


class ReplySent(Event, frozen=True, kw_only=True):
    """The provider confirmed the reply."""

    message_id: str


class ReplyFailed(Event, frozen=True, kw_only=True):
    """The reply surely did not go out."""

    text: str
