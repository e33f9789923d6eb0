"""The typed events of the `inbox` agent."""

from typing import Annotated, ClassVar, Literal

import msgspec

from waybook.events.typed import DecisionEvent, Event, ExternalEvent, Personal, StartEvent
from waybook.inbox.classify import Classification, Intent
from waybook.inbox.context import Context
from waybook.inbox.draft import Draft
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.reply import Reply
from waybook.inbox.route import Routed
from waybook.inbox.scan.findings import SecurityFlags


class ObjectReference(msgspec.Struct, frozen=True):
    """A payload kept in the bucket `artifacts`: its object name, SHA-256 in hexadecimal, size in bytes."""

    name: str
    sha256: str
    size: int


class MailReceived(StartEvent, frozen=True, kw_only=True, rename={"sender": "from"}):
    """A mail, as intake read it.

    `sender`, `subject` and `date` (ISO 8601, UTC) are for people and read models. Texts over 64 KiB are cut in
    `mail`; `objects` names, by field, the object that holds such a text whole, and by digest those that hold the
    attachments. `received_at` is in ms, UTC.
    """

    sender: Annotated[str, Personal]
    subject: Annotated[str, Personal]
    mail: Annotated[ParsedMail, Personal]
    received_at: int
    date: str | None = None
    objects: dict[str, ObjectReference] = {}


class ScanPassed(Event, frozen=True, kw_only=True):
    """The scan found nothing that stops the mail. `text` is what a reader sees of it, and all that a model may read."""

    flags: SecurityFlags
    text: Annotated[str, Personal]


class ThreatFound(Event, frozen=True, kw_only=True):
    """An injection (confidence from 0.7) or a malicious link."""

    flags: SecurityFlags


class SpamFound(Event, frozen=True, kw_only=True):
    """A spam score from 80."""

    flags: SecurityFlags


class AgentDisabled(Event, frozen=True, kw_only=True):
    """The scan passed, and the owner has switched the agent off: the mail waits where it is, its flags are kept."""

    flags: SecurityFlags


class ContextRetrieved(Event, frozen=True, kw_only=True):
    """What is known around the mail, within the token budget."""

    context: Annotated[Context, Personal]


class MailClassified(Event, frozen=True, kw_only=True):
    """The mail is to be answered."""

    classification: Annotated[Classification, Personal]


class SeveralIntents(Event, frozen=True, kw_only=True):
    """The mail is to be answered and asks for several things; an IntentFound for each comes with it."""

    classification: Classification


class IntentFound(Event, frozen=True, kw_only=True):
    """One of several things that a mail asks for, from 1. It begins a branch: a draft of its own is written for it."""

    BRANCH: ClassVar[str | None] = "number"

    number: int
    of: int
    intent: Intent
    language: str = ""


class SpamClassified(Event, frozen=True, kw_only=True):
    """The classifier takes the mail for spam, or a rule of the owner archives it (`reason`)."""

    classification: Annotated[Classification, Personal]
    reason: str


class NothingReadable(Event, frozen=True, kw_only=True):
    """The mail holds no text that a reader sees: no draft is written, a person decides (`routed` says why)."""

    classification: Annotated[Classification, Personal]
    routed: Routed


class PartDrafted(Event, frozen=True, kw_only=True):
    """The draft for one of several intents, by the number of the intent."""

    number: int
    draft: Annotated[Draft, Personal]


class DraftProposed(Event, frozen=True, kw_only=True):
    """A reply to all intents. It carries the classification on, so that `route` reads no shared record."""

    draft: Annotated[Draft, Personal]
    classification: Annotated[Classification, Personal]


class ReviewRequested(Event, frozen=True, kw_only=True):
    """A person decides; the decision names the first objection."""

    routed: Routed


class AutoApproved(Event, frozen=True, kw_only=True):
    """Every gate agrees to an unattended reply."""

    routed: Routed


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


class DraftApproved(DecisionEvent, frozen=True, kw_only=True):
    """A person approves the draft."""

    by: str


class DraftRejected(DecisionEvent, frozen=True, kw_only=True):
    """A person refuses the draft."""

    by: str
    reason: str | None = None


class DraftSaved(ExternalEvent, frozen=True, kw_only=True):
    """A person saves another text as the reply. `saved_at` in ms, UTC. An approval that was given does not cover it."""

    by: str
    text: Annotated[str, Personal]
    subject: Annotated[str | None, Personal] = None
    saved_at: int | None = None
    reason: str | None = None


class RedraftAsked(ExternalEvent, frozen=True, kw_only=True):
    """A person wants the reply drafted anew, or the part of it for one intent (`intent`, from 1) alone."""

    by: str
    intent: int | None = None
    reason: str | None = None


class SendCancelled(ExternalEvent, frozen=True, kw_only=True):
    """A pending send is called back for review."""

    by: str
    reason: str = "user_cancel"


class SendDue(DecisionEvent, frozen=True, kw_only=True):
    """The undo window is over: this reply leaves now, under this approval. Only the engine publishes it.

    `source`: who approved, `human` or `auto`; `reservation`: what an unattended reply was charged to;
    `edited`: a person wrote it. `reply` None: there is nothing to send.
    """

    reply: Annotated[Reply | None, Personal] = None
    approval: str | None = None
    source: str = "auto"
    reservation: str | None = None
    edited: bool = False


class SendWithheld(Event, frozen=True, kw_only=True):
    """The reply may not leave now (`reason` is a stable word: kill_switch, thread_reply, ...); people decide anew."""

    reason: str
    text: str = ""


class ReplySent(Event, frozen=True, kw_only=True):
    """The provider confirmed the reply."""

    message_id: str


class ReplyReturned(ExternalEvent, frozen=True, kw_only=True):
    """The reply came to a bad end after it left: it bounced, or its recipient called it spam.

    `message_id` is that of the reply, `report` the run of the mail that says so, `at` when that came in (ms, UTC).
    """

    kind: Literal["bounced", "complained"]
    message_id: str
    report: str = ""
    status: str = ""
    text: Annotated[str, Personal] = ""
    at: int = 0


class ReplyFailed(Event, frozen=True, kw_only=True):
    """The reply surely did not go out."""

    text: Annotated[str, Personal]
