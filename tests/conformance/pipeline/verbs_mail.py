"""Mail that arrives on a live channel."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import mail, people, product
from tests.conformance.pipeline.client import Asked
from tests.conformance.pipeline.messages import DEFAULTS, Message
from tests.conformance.pipeline.verbs import Action, verb
from tests.conformance.pipeline.world import World

MEMBERS = (
    "message_id",
    "from",
    "to",
    "subject",
    "text",
    "html",
    "headers",
    "thread",
    "id",
    "received_at",
    "at",
    "concurrent",
)


from waybook.events.subjects import RunKey, reused_run_id
from waybook.inbox.starting import MailStart


@verb("receive", *MEMBERS)
async def receive(world: World, action: Action) -> None:
    """A mail arrives; it answers as soon as the mail is stored."""
    if action.get("at") is not None:
        await world.pass_time(max(0, world.began_ms + round(float(action["at"]) * 1000) - world.clock.now()))
    given = _given(action, len(world.messages))
    raw = mail.build(given)
    asked = [await _arrive(world, action, given, raw) for _ in range(int(action.get("concurrent") or 1))]
    await world.settle()
    world.hear(people.outcome(one, human=False) for one in asked)


@verb("receive_burst", "count", "from")
async def receive_burst(world: World, action: Action) -> None:
    """Mails of one sender within one second, each with a thread and a Message-ID of its own."""
    for number in range(int(action["count"])):
        one = {"from": action["from"], "thread": f"burst-{number}", "id": f"burst-{number}"}
        given = _given(one, number)
        await _arrive(world, one, given, mail.build(given))
    await world.settle()


def _given(action: Action, number: int) -> dict[str, Any]:
    identity = action.get("message_id", mail.message_id(f"received-{number}-{action.get('id', '')}"))
    return {
        "sender": action.get("from", DEFAULTS["sender"]),
        "to": action.get("to"),
        "subject": action.get("subject", DEFAULTS["subject"]),
        "text": action.get("text", DEFAULTS["text"]),
        "html": action.get("html"),
        "messageId": identity,
        "thread": action.get("thread"),
        "headers": action.get("headers"),
    }


def _key(world: World, start: MailStart) -> RunKey:
    """The run of a mail; one whose Message-ID is that of another content has a run of its own (DESIGN 3)."""
    alike = [m for m in world.messages.values() if m.key == start.key]
    if all(product.take_in(world, m.mail).payload.content == start.payload.content for m in alike):
        return start.key
    given = start.payload
    run = reused_run_id(start.key.tenant, given.mailbox or "", given.id or "", given.content or "")
    return RunKey(start.key.tenant, start.key.agent, run)


async def _arrive(world: World, action: Action, given: Mapping[str, Any], raw: bytes) -> Asked:
    start = product.take_in(world, raw)
    name = action.get("id")
    known = any(m.key == start.key for m in world.messages.values())
    if name is not None and name in world.messages and not known:
        raise Unsupported(f"`receive`: the id {name} is used twice")
    if not known or name is not None:
        name = name or f"received-{len(world.messages)}"
        world.messages.setdefault(name, Message(name, _key(world, start), given, raw, stored=True))
    return await product.submit(world, start)
