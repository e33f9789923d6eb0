"""What became of a reply after it left: bounces and complaints, tied to the run that they concern (RFC 3464, RFC 5965).

The Message-ID of a reply names its run, and a report quotes it. So the run of the report tells the run of the reply, which
keeps it in its own log, also after it has ended, and tells those that draw consequences: the counts by which the breaker
opens, and the sender, for whom nothing of that category leaves without a person any more.
"""

import re
from collections.abc import Sequence
from typing import Any

from waybook.engine.aggregates.keys import outcomes_key, sender_key
from waybook.engine.digest import idempotency_key
from waybook.engine.inputs import World
from waybook.engine.run import Run
from waybook.engine.telling import Telling
from waybook.events import engine as e
from waybook.inbox import events as ev
from waybook.inbox.intake.mail import DeliveryReport
from waybook.inbox.reply import EFFECT, author_of

OURS = re.compile(r"<?([a-z2-7]{32})\.([a-z0-9_-]{1,64})@[^<>@\s]+>?")
"""A Message-ID of ours: the operation's key, and the run."""

KINDS = {"failed": "bounced", "complained": "complained"}
"""Reports that say of a reply that it came to a bad end; a delay is none, and neither is a delivery."""

FIELD = "returned"
MOST_TEXT = 300


def is_bad_end(report: DeliveryReport | None) -> bool:
    """Whether a report says that one of our replies came to a bad end."""
    return report is not None and report.action in KINDS and OURS.fullmatch(report.original_id or "") is not None


def tell_replied(run: Run, event: ev.MailReceived, now: int) -> Sequence[Telling]:
    """What a report has the run of the reply learn."""
    report = event.mail.delivery
    if report is None or not is_bad_end(report):
        return ()
    ours = OURS.fullmatch(report.original_id or "")
    assert ours is not None
    said = ev.ReplyReturned(
        kind="bounced" if KINDS[report.action] == "bounced" else "complained",
        message_id=report.original_id or "",
        report=run.key.run,
        status=report.status,
        text=(report.diagnostic or str(report))[:MOST_TEXT],
        at=event.received_at,
    )
    return (Telling(run.key.agent, ours[2], ev.ReplyReturned.__name__, said),)


def is_news(run: Run, event: ev.ReplyReturned, world: World) -> bool:
    """Whether it is about a reply of this very run, and was not known: a bounce and a complaint count once each."""
    known = run.fields.get(FIELD) or ()
    return _is_of(run, event.message_id) and all(one["kind"] != event.kind for one in known)


def _is_of(run: Run, message_id: str) -> bool:
    if message_id.strip("<> ") == str(run.fields.get("sent_message_id") or "").strip("<> "):
        return True
    ours = OURS.fullmatch(message_id)
    keys = [key for key, one in run.operations.items() if one.intent.name == EFFECT]
    return ours is not None and any(idempotency_key(run.key, key) == ours[1] for key in keys)


def returned(run: Run, event: ev.ReplyReturned) -> dict[str, Any]:
    """The fields of a run whose reply came to a bad end; a remark tells people."""
    one = {"kind": event.kind, "status": event.status, "text": event.text, "report": event.report, "at": event.at}
    word = f"the reply {event.kind}" + (f" ({event.status})" if event.status else "")
    remark = f"{word}: replies to {category_of(run)} mails of this sender wait for a person now"
    return {FIELD: [*(run.fields.get(FIELD) or ()), one], "remarks": [*(run.fields.get("remarks") or ()), remark]}


def category_of(run: Run) -> str:
    """What the run's mail is about, as it was classified."""
    return str((run.fields.get("classification") or {}).get("category") or "other")


def tell_outcome(run: Run, event: ev.ReplyReturned, now: int) -> Sequence[Telling]:
    """Whom a bad end concerns. Only replies that left without a person count for the breaker."""
    told = []
    if run.fields.get("approval_source") == "auto":
        counted = e.OutcomeCounted(kind=event.kind, run=run.key.run, at=now)
        told.append(_counting(run, counted, now))
    if address := author_of(run):
        category = category_of(run)
        trust = e.SenderTrustSet(
            category=category, trusted=False, by="engine", reason=f"a reply {event.kind}", run=run.key.run
        )
        sender = sender_key(run.key.tenant, address)
        told.append(Telling(sender.agent, sender.run, e.SenderTrustSet.__name__, trust))
    return told


def tell_sent(run: Run, event: ev.ReplySent, now: int) -> Sequence[Telling]:
    """A reply left without a person: one more to measure bad ends by."""
    if run.fields.get("approval_source") != "auto":
        return ()
    return (_counting(run, e.OutcomeCounted(kind="sent", run=run.key.run, at=now), now),)


def _counting(run: Run, counted: e.OutcomeCounted, now: int) -> Telling:
    key = outcomes_key(run.key.tenant, now)
    return Telling(key.agent, key.run, e.OutcomeCounted.__name__, counted)


def tell_blocked(run: Run, event: ev.SenderBlocked, now: int) -> Sequence[Telling]:
    """A person blocks the sender: what comes from there later is put away at once."""
    address = author_of(run)
    if not address:
        return ()
    sender = sender_key(run.key.tenant, address)
    block = e.SenderBlockSet(on=True, by=event.by, reason=event.reason, run=run.key.run)
    return (Telling(sender.agent, sender.run, e.SenderBlockSet.__name__, block),)
