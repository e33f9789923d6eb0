"""What must hold of sends: mails that the service took, operations, what threads and people see of a draft."""

from collections.abc import Mapping
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

from tests.conformance.pipeline import owner
from tests.conformance.pipeline.compare import Differences, differences
from tests.conformance.pipeline.expect import reads
from tests.conformance.pipeline.mailing import PRODUCT_ONLY
from tests.conformance.pipeline.names import to_case
from tests.conformance.pipeline.world import World

from waybook.adapters.effects.mail import mail_of
from waybook.engine.run import Operation
from waybook.events import engine as e
from waybook.inbox.approved import DRAFT_STATUS

SENDER = "Help <help@ours.example>"
STATUS = {None: "open", "absent": "failed"}


@reads("sends")
async def _sends(world: World, value: Any) -> Differences:
    return differences(value, len(world.mails.taken) - world.mark.mails)


@reads("counters")
async def _counters(world: World, value: Any) -> Differences:
    return differences(value, {"daily_auto_replies": await owner.daily_count(world)})


@reads("rule_daily_count")
async def _rule_daily_count(world: World, value: Any) -> Differences:
    """What the ledger of the message's autonomy rule counts today."""
    rule = world.settings.route.autonomy_rules[0]
    return differences(value, await owner.count(world, rule.scope))


@reads("shadow_observation")
async def _shadow_observation(world: World, value: Any) -> Differences:
    """The decision that was noted in place of an automatic one."""
    run = (await world.history(world.message().key)).run
    decision = run.fields.get("agent_decision") or {} if run is not None else {}
    return differences(value, {"would_have_sent": decision.get("shadow", False)})


@reads("sends_max")
async def _sends_max(world: World, value: Any) -> Differences:
    made = len(world.mails.taken) - world.mark.mails
    return [] if made <= value else [f"{made} mails were sent, at most {value} expected"]


async def _last(world: World) -> EmailMessage:
    """The last mail as it leaves."""
    mail = await mail_of(world.mails.last().call, SENDER, None)
    message = BytesParser(policy=policy.default).parsebytes(mail.data)
    assert isinstance(message, EmailMessage)
    return message


@reads("sent_text")
async def _sent_text(world: World, value: Any) -> Differences:
    body = (await _last(world)).get_body(("plain",))
    return differences(value, body.get_content().rstrip("\r\n") if body is not None else None)


@reads("mail_to")
async def _mail_to(world: World, value: Any) -> Differences:
    return differences(value, str((await _last(world))["To"]))


@reads("mail_headers")
async def _mail_headers(world: World, value: Any) -> Differences:
    mail = await _last(world)
    return differences(value, {name: " ".join(str(mail[name]).split()) if name in mail else None for name in value})


@reads("mail_attachments")
async def _mail_attachments(world: World, value: Any) -> Differences:
    return differences(value, [part.get_filename() for part in (await _last(world)).iter_attachments()])


async def _html(world: World) -> str:
    body = (await _last(world)).get_body(("html",))
    return str(body.get_content()) if body is not None else ""


@reads("mail_html_must_contain")
async def _mail_html_must_contain(world: World, value: Any) -> Differences:
    html = await _html(world)
    return [f"{part!r} is not in the mail" for part in value if part not in html]


@reads("mail_html_must_not_contain")
async def _mail_html_must_not_contain(world: World, value: Any) -> Differences:
    html = await _html(world)
    return [f"{part!r} is in the mail" for part in value if part in html]


@reads("operations")
async def _operations(world: World, value: Any) -> Differences:
    """Every expected row is found, by name; several of one name are matched oldest first."""
    rows = [_row(one) for h in await world.histories() if h.run is not None for one in h.run.operations.values()]
    found: Differences = []
    for number, wanted in enumerate(value):
        alike = [r for r in rows if r["name"] == wanted["name"]]
        before = sum(w["name"] == wanted["name"] for w in value[:number])
        alone = sum(w["name"] == wanted["name"] for w in value) == 1
        if len(alike) <= before:
            found.append(f"there is no operation {wanted['name']}")
            continue
        found += differences(wanted, alike[-1] if alone else alike[before], where=wanted["name"])
    return found


def _row(operation: Operation) -> dict[str, Any]:
    intent, evidence = operation.intent, operation.evidence
    return {
        "name": PRODUCT_ONLY.get(intent.name, intent.name),
        "status": STATUS.get(operation.outcome, operation.outcome),
        "params": to_case(intent.params),
        "provider_id": evidence.get("provider_id"),
        "disputed": bool(operation.disputed) or None,
    }


async def statuses(world: World, since_mark: bool) -> list[str]:
    """What the runs' transitions write to their thread's latestDraftStatus, in order."""
    entries = []
    for history in await world.histories():
        entries += list(history.entries(world.since(history) if since_mark else 0))
    moved = (x.event for x in sorted(entries, key=lambda x: (x.sequence, x.index)))
    states = [event.to_state for event in moved if isinstance(event, e.Transitioned)]
    return [DRAFT_STATUS[state] for state in states if state in DRAFT_STATUS]


@reads("thread_status_sequence")
async def _thread_status_sequence(world: World, value: Any) -> Differences:
    return differences(value, await statuses(world, since_mark=True))


async def latest_status(world: World) -> str | None:
    """The thread's latestDraftStatus."""
    written = await statuses(world, since_mark=False)
    return written[-1] if written else None


async def cancelled_sends(world: World) -> str | None:
    """Why a pending send was called back last."""
    reasons = []
    for history in await world.histories():
        for moved in history.events(e.Transitioned, world.since(history)):
            if (moved.from_state, moved.to_state) == ("approved", "draft_ready"):
                reasons.append(str(moved.fields.get("cancel_reason")))
    return reasons[-1] if reasons else None


def config_after(values: Mapping[str, Any], *, stopped: bool) -> dict[str, Any]:
    """The owner's switches as they stand; the kill switch turns both off."""
    return {name: False if stopped else values.get(name) for name in ("auto_reply", "autonomy")}
