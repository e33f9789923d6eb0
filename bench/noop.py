"""The work of the bench: the `inbox` lifecycle with five steps that do nothing (DESIGN 12)."""

from waybook.agents import Agent, StartEvent, step
from waybook.inbox.events import (
    Classification,
    ContextRetrieved,
    DraftProposed,
    MailClassified,
    ReviewRequested,
    ScanPassed,
    SecurityFlags,
)
from waybook.inbox.table import TABLE

FLAGS = SecurityFlags(injection_detected=False, confidence=0.0, scan_timestamp=0)
CLASSIFICATION = Classification("support", "normal", "neutral", "question", 0.9)


class MailReceived(StartEvent, frozen=True, kw_only=True, rename={"sender": "from"}):
    """A start event as small as the bare figure's payload, under the name that the lifecycle table knows."""

    sender: str
    subject: str
    text: str
    automated: str | None = None

    @property
    def mail(self) -> "MailReceived":
        return self


class NoopInbox(Agent):
    """Five steps, each result durable before the next."""

    name = "inbox"
    table = TABLE

    @step
    async def security_scan(self, mail: MailReceived) -> ScanPassed:
        return ScanPassed(flags=FLAGS)

    @step
    async def context_retrieval(self, mail: MailReceived, scan: ScanPassed) -> ContextRetrieved:
        return ContextRetrieved(text="", tier="normal")

    @step
    async def classify(self, mail: MailReceived, context: ContextRetrieved) -> MailClassified:
        return MailClassified(classification=CLASSIFICATION)

    @step
    async def draft(self, mail: MailReceived, classified: MailClassified) -> DraftProposed:
        return DraftProposed(text="Thank you.", subject="Re: no-op", classification=classified.classification)

    @step
    async def route(self, draft: DraftProposed) -> ReviewRequested:
        return ReviewRequested(reason="auto_reply_off")
