"""The work of the bench: the `inbox` lifecycle with five steps that do nothing (DESIGN 12)."""

from waybook.agents import Agent, step
from waybook.inbox.classify import Classification, Intent
from waybook.inbox.context import Context, Coverage
from waybook.inbox.draft import Draft
from waybook.inbox.events import (
    ContextRetrieved,
    DraftProposed,
    MailClassified,
    MailReceived,
    ReviewRequested,
    ScanPassed,
)
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.route import Routed
from waybook.inbox.scan.findings import SecurityFlags
from waybook.inbox.table import TABLE

INTENT = Intent(category="support", priority="normal", sentiment="neutral", intent="question", confidence=0.9)
CLASSIFICATION = Classification(intents=(INTENT,))
PASSED = ScanPassed(flags=SecurityFlags(), text="")
RETRIEVED = ContextRetrieved(context=Context(text="", tier="normal", tokens=0, coverage=Coverage()))
PROPOSED = DraftProposed(draft=Draft(text="Thank you.", subject="Re: no-op"), classification=CLASSIFICATION)
REVIEW = ReviewRequested(routed=Routed(decision="human_review", reason="automatic replies are off"))


def mail(number: int) -> MailReceived:
    """A start event about as small as the bare figure's payload."""
    parsed = ParsedMail(subject="no-op", message_id=f"{number}@x.example", text="x" * 200, body_source="plain")
    return MailReceived(sender="ann@x.example", subject="no-op", mail=parsed, received_at=0)


class NoopInbox(Agent):
    """Five steps, each result durable before the next."""

    name = "inbox"
    table = TABLE

    @step
    async def security_scan(self, mail: MailReceived) -> ScanPassed:
        return PASSED

    @step
    async def context_retrieval(self, mail: MailReceived, scan: ScanPassed) -> ContextRetrieved:
        return RETRIEVED

    @step
    async def classify(self, mail: MailReceived, context: ContextRetrieved) -> MailClassified:
        return MailClassified(classification=CLASSIFICATION)

    @step
    async def draft(self, mail: MailReceived, classified: MailClassified) -> DraftProposed:
        return PROPOSED

    @step
    async def route(self, draft: DraftProposed) -> ReviewRequested:
        return REVIEW
