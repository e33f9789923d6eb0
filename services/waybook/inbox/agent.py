"""The agent `inbox`: five steps from a mail to a reply that a person, or every gate, lets go, and a sixth that sends it.

A mail that asks for several things is drafted for in branches, one for each, and a step more joins them to one reply.

Each step is work and a pure route: the work returns what it found, the route turns that into an event, and the
lifecycle table (`waybook.inbox.table`) decides what the event means. Nothing in the engine knows this agent by name.
"""

import msgspec

from waybook.agents import Agent, StepContext, precondition, step
from waybook.agents.effects import Effects
from waybook.agents.ledgers import Ledgers
from waybook.engine.ports import Clock
from waybook.inbox import classify as classifying
from waybook.inbox import compose as composing
from waybook.inbox import context as retrieving
from waybook.inbox import deciding, sending
from waybook.inbox import draft as drafting
from waybook.inbox import events as ev
from waybook.inbox import route as routing
from waybook.inbox.brakes import Brakes
from waybook.inbox.classify import Classification
from waybook.inbox.draft import Draft, DraftInput
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.intake.parse import is_blank
from waybook.inbox.knowledge import Knowledge
from waybook.inbox.route import Routed, RouteFacts
from waybook.inbox.scan.findings import ScanResult, verdict
from waybook.inbox.scan.scan import security_scan
from waybook.inbox.settings import InboxSettings, Models
from waybook.inbox.table import TABLE

Classified = ev.MailClassified | list[ev.SeveralIntents | ev.IntentFound] | ev.SpamClassified | ev.NothingReadable
ScanEvent = ev.ScanPassed | ev.ThreatFound | ev.SpamFound | ev.AgentDisabled


@precondition
def all_drafted(parts: list[ev.PartDrafted], several: ev.SeveralIntents) -> bool:
    return len(parts) == len(several.classification.intents)


class Inbox(Agent):
    """The message pipeline: security_scan, context_retrieval, classify, draft, route, send; compose for several intents."""

    name = "inbox"
    table = TABLE
    uses = (Models, InboxSettings, Knowledge, Brakes, Clock)
    accepts = (
        ev.MailReleased,
        ev.SenderBlocked,
        ev.ClarificationAnswered,
        ev.DraftApproved,
        ev.DraftRejected,
        ev.DraftSaved,
        ev.RedraftAsked,
        ev.SendCancelled,
        ev.ReplyReturned,
    )

    @step(depends=(security_scan, verdict))
    async def security_scan(
        self, mail: ev.MailReceived, models: Models, settings: InboxSettings, clock: Clock, context: StepContext
    ) -> ev.ScanPassed | ev.ThreatFound | ev.SpamFound | ev.AgentDisabled:
        result, judged = await security_scan(
            mail.mail,
            now=clock.now(),
            guard=models.of(context).guard,
            settings=settings.scan,
            released="released" in context.flags,
        )
        if judged.model is not None:
            context.used_model(judged.model)
        return route_scan(result)

    @step(depends=(retrieving,))
    async def context_retrieval(
        self, mail: ev.MailReceived, scan: ev.ScanPassed, models: Models, knowledge: Knowledge, context: StepContext
    ) -> ev.ContextRetrieved:
        found = await retrieving.context_retrieval(
            knowledge,
            sender=sender_address(mail.mail),
            subject=mail.mail.subject,
            text=scan.text,
            thread=context.thread,
            run=context.key.run,
            extraction=models.of(context).extraction,
            verified=scan.flags.sender_verification != "unverified",
        )
        if found.model is not None:
            context.used_model(found.model)
        return ev.ContextRetrieved(context=found)

    @step(depends=(classifying,))
    async def classify(
        self,
        mail: ev.MailReceived,
        scan: ev.ScanPassed,
        retrieved: ev.ContextRetrieved,
        models: Models,
        settings: InboxSettings,
        context: StepContext,
    ) -> Classified:
        found = await classifying.classify(
            models.of(context).classify,
            subject=mail.mail.subject,
            text=scan.text,
            context=retrieved.context.text,
            sender=sender_address(mail.mail),
            rules=await settings.standing_rules(),
        )
        if found.model is not None:
            context.used_model(found.model)
        return route_classification(found, readable=not is_blank(scan.text))

    @step(depends=(drafting,))
    async def draft(
        self,
        mail: ev.MailReceived,
        scan: ev.ScanPassed,
        retrieved: ev.ContextRetrieved,
        found: ev.MailClassified | ev.IntentFound,
        models: Models,
        settings: InboxSettings,
        context: StepContext,
    ) -> ev.DraftProposed | ev.PartDrafted:
        asked = asked_for(found)
        given = DraftInput(
            subject=mail.mail.subject,
            text=scan.text,
            intent=asked.intent,
            context=retrieved.context.text,
            language=asked.language,
            recipient_name=mail.mail.author.name if mail.mail.author is not None else "",
            passage=retrieved.context.passage,
            signature=settings.signature,
            tone=settings.tone,
            released="released" in context.flags,
            part=(asked.number, asked.of),
        )
        asking = models.of(context)
        drafted = await drafting.draft(asking.draft, given, self_check=asking.self_check)
        if drafted.model is not None:
            context.used_model(drafted.model)
        return route_draft(found, drafted)

    @step(depends=(composing,), precondition=all_drafted)
    async def compose(self, parts: list[ev.PartDrafted], several: ev.SeveralIntents) -> ev.DraftProposed:
        ordered = sorted(parts, key=lambda part: part.number)
        return ev.DraftProposed(
            draft=composing.compose([part.draft for part in ordered]), classification=several.classification
        )

    @step(depends=(routing, deciding))
    async def route(
        self,
        mail: ev.MailReceived,
        scan: ev.ScanPassed,
        draft: ev.DraftProposed,
        settings: InboxSettings,
        brakes: Brakes,
        ledgers: Ledgers,
        clock: Clock,
        context: StepContext,
    ) -> ev.ReviewRequested | ev.AutoApproved:
        sender = sender_address(mail.mail)
        ruled = classifying.apply_rules(
            draft.classification, await settings.standing_rules(), sender=sender, subject=mail.mail.subject
        )  # anew: the owner may have made a rule since the mail was classified, and a rule only ever forbids here
        facts = RouteFacts(
            classification=msgspec.structs.replace(draft.classification, never_auto_send=ruled.never_auto_send),
            draft=draft.draft,
            flags=scan.flags,
            sender=sender,
            thread=context.thread or "",
            released="released" in context.flags,
            message_id_reused="message_id_reused" in context.flags,
            mails_before=len(mail.mail.references),
        )
        routed = await deciding.decide(facts, settings.route, brakes, ledgers, now=clock.now())
        context.remark(f"gate:{routed.gate}" if routed.gate is not None else "unattended")
        return route_decision(routed)

    @step(depends=(sending,))
    async def send(
        self, due: ev.SendDue, mail: ev.MailReceived, settings: InboxSettings, effects: Effects
    ) -> ev.ReplySent | ev.ReplyFailed | ev.SendWithheld:
        return await sending.send(
            due,
            sender=sender_address(mail.mail),
            effects=effects,
            suppressed=settings.is_suppressed,
            own_hosts=settings.scan.own_hosts,
        )


def sender_address(mail: ParsedMail) -> str:
    """Whom a reply would go to: the author's address, empty when there is none."""
    return mail.author.address if mail.author is not None else ""


def route_scan(result: ScanResult) -> ScanEvent:
    """The scan's event (pipeline-spec 7.1: first match wins)."""
    flags = result.security_flags
    match verdict(result):
        case "quarantined":
            return ev.ThreatFound(flags=flags)
        case "spam":
            return ev.SpamFound(flags=flags)
        case "disabled":
            return ev.AgentDisabled(flags=flags)
        case "clean":
            return ev.ScanPassed(flags=flags, text=result.text)


def route_classification(found: Classification, *, readable: bool = True) -> Classified:
    """The classification's event (pipeline-spec 7.3); without a readable text there is nothing to draft from.

    Several intents: each is drafted for in a branch of its own.
    """
    match classifying.outcome(found):
        case "spam":
            return ev.SpamClassified(classification=found, reason="classifier_spam")
        case "auto_archive":
            return ev.SpamClassified(classification=found, reason="handling_rule_archive")
        case "draft" if not readable:
            return ev.NothingReadable(classification=found, routed=routing.unanswerable(drafting.NO_TEXT))
        case "draft" if len(found.intents) == 1:
            return ev.MailClassified(classification=found)
        case "draft":
            return [
                ev.SeveralIntents(classification=found),
                *(intent_found(found, i) for i in range(len(found.intents))),
            ]


def intent_found(found: Classification, index: int) -> ev.IntentFound:
    """One of a classification's intents, by its place from 0, as the draft step takes it."""
    return ev.IntentFound(number=index + 1, of=len(found.intents), intent=found.intents[index], language=found.language)


def asked_for(found: ev.MailClassified | ev.IntentFound) -> ev.IntentFound:
    """What is to be drafted for: a branch's own intent, or the only one."""
    if isinstance(found, ev.IntentFound):
        return found
    whole = found.classification
    return ev.IntentFound(number=1, of=1, intent=whole.main, language=whole.language)


def route_draft(found: ev.MailClassified | ev.IntentFound, drafted: Draft) -> ev.DraftProposed | ev.PartDrafted:
    """The draft's event: the reply, or a part of it that is joined with the others."""
    if isinstance(found, ev.IntentFound):
        return ev.PartDrafted(number=found.number, draft=drafted)
    return ev.DraftProposed(draft=drafted, classification=found.classification)


def route_decision(routed: Routed) -> ev.ReviewRequested | ev.AutoApproved:
    """The decision's event (pipeline-spec 7.6)."""
    if routed.decision == "auto_approve":
        return ev.AutoApproved(routed=routed)
    return ev.ReviewRequested(routed=routed)
