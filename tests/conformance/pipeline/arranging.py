"""From a case's `given` to messages with histories."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import arrange_log, arrange_sends, mail, owner, product, results, threads
from tests.conformance.pipeline.arrange import Arranger
from tests.conformance.pipeline.history import message_fields
from tests.conformance.pipeline.messages import Message, with_defaults
from tests.conformance.pipeline.scribe import NOBODY, Scribe
from tests.conformance.pipeline.sources import MEMBERS as SOURCES
from tests.conformance.pipeline.world import World

from waybook.engine.definition import FAILED
from waybook.inbox.events import MailReceived

READ = frozenset(
    {"message", "messages", "generate", "config", "action_rows", "step_results", "models", "fail_once", "always_fail"}
    | {
        "thread",
        "always_crash",
        "workers",
        "clock_offset_s",
        "note",
        "language",
        "technique",
        "step_effects",
        "adapters",
        "operations",
        "approvals",
        "suppressed",
        "log",
        "feedback_week",
    }
)
"""Members of `given` that are arranged here or read where they matter."""

CONFIG_READ: frozenset[str] = frozenset()

AGE_MS = 10_000
"""How long before the case's beginning an arranged history begins, unless the case says so."""


async def arrange(world: World) -> None:
    """Everything that the case gives, before its actions. Unsupported for what this runner does not arrange."""
    given = world.case.given
    unread = set(given) - READ - SOURCES
    if unread:
        raise Unsupported(f"given.{', given.'.join(sorted(unread))}: not arranged yet")
    config = set(given.get("config") or {}) - CONFIG_READ - product.CONFIG_READ
    if config:
        raise Unsupported(f"given.config.{', '.join(sorted(config))}: not arranged yet")
    await owner.arrange(world, given)
    if given.get("thread") is not None:
        await threads.arrange(world, given["thread"])
    if given.get("log") is not None:
        recorded = await arrange_log.arrange(world, given["log"], arrange)
        world.messages[recorded.id] = recorded
    for name, one in _messages(given):
        message = _message(world, name, one)
        world.messages[name] = message
    for message in world.messages.values():
        if message.arranged:
            continue  # recorded, not written
        if message.state != "received" or _rows_of(world, message):
            await write(world, message)
    await world.set_mark()


def _messages(given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for group in given.get("generate") or []:
        for number in range(1, group["count"] + 1):
            one = {**group["message"], "operations": group.get("operations") or []}
            yield f"{group['id_prefix']}{number}", one
    if given.get("message") is not None:
        yield given["message"].get("id", "m"), given["message"]
    for number, one in enumerate(given.get("messages") or [], 1):
        yield one.get("id", f"m{number}"), one


def _message(world: World, name: str, given: Mapping[str, Any]) -> Message:
    full = with_defaults(given)
    full.setdefault("messageId", mail.message_id(name))
    state = full.get("state", "received")
    unread = {"walk"} & {k for k, v in given.items() if v not in (None, "none", 1)}
    if unread or given.get("started") is False:
        raise Unsupported(f"given.message: {', '.join(sorted(unread)) or 'started'}: not arranged yet")
    if state != FAILED and state not in world.definition.engine.table.states:
        raise Unsupported(f"given.message.state: the product has no state {state}")
    raw = mail.build(full)
    return Message(name, product.take_in(world, raw).key, full, raw, state=state)


async def arrange_extra(world: World, name: str, given: Mapping[str, Any]) -> Message:
    """One more message, in the middle of a case."""
    message = _message(world, name, given)
    world.messages[name] = message
    await write(world, message)
    return message


async def store(world: World, message: Message) -> None:
    """Writes the history of a received mail whose start was still waiting: something else than its start comes first."""
    if not message.stored:
        await write(world, message)


def _operations_of(world: World) -> list[Mapping[str, Any]]:
    """Rows of the operation ledger that the case gives for its message; generated ones have their own."""
    return list(world.case.given.get("operations") or []) if world.case.given.get("message") is not None else []


def _approval_ends(world: World) -> int | None:
    """Until when the given approval of the send holds, None: it is far from its end."""
    for given in world.case.given.get("approvals") or []:
        if given.get("name") != "send" or set(given) - {"name", "by", "expires_in_seconds", "id"}:
            raise Unsupported("given.approvals: only that of a send is arranged yet")
        return world.began_ms + round(float(given["expires_in_seconds"]) * 1000)
    return None


def _rows_of(world: World, message: Message) -> list[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = world.case.given.get("action_rows") or []
    only = len(world.messages) == 1
    mine = [r for r in rows if r.get("message") == message.id or ("message" not in r and only)]
    return sorted(mine, key=lambda r: r.get("age_rank", 0))


async def write(world: World, message: Message) -> None:
    """Writes the message's arranged history."""
    rows = _rows_of(world, message)
    running = any(r["status"] == "running" for r in rows)
    holder = await world.ghost.hold(message.key) if running else NOBODY
    age = int(message.given.get("age_seconds", 0)) * 1000
    approved = round(float(message.given.get("approved_minutes_ago") or 0) * 60_000)
    at = world.began_ms - max(age, approved, 0) - AGE_MS
    scribe = Scribe(world.definition, world.backend.ports.state, world.codec, message.key, at)
    arranger = Arranger(message, scribe, rows, _first_step(world, message), holder, world.began_ms)
    arranger.approval_ends = _approval_ends(world)
    start = product.take_in(world, message.mail).payload
    assert start.body is not None
    event = world.definition.decode(start.event, start.schema, start.body)
    assert isinstance(event, MailReceived)
    await arranger.write(results.StartEvent(event, start.thread, product.configuration(world)))
    if message.given.get("pendingAutoSend") is not None:
        await arrange_sends.window(scribe, message.given["pendingAutoSend"], world.began_ms)
    done = list(message.given.get("operations") or []) or _operations_of(world)
    sends = [row for row in done if row["name"] == "send"]
    if sends and message.state == "approved":
        adapter = (world.case.given.get("adapters") or {}).get("send") or {}
        await arrange_sends.operations(scribe, sends, adapter, world.began_ms)
        world.mails.given[str(message.key)] = sends[0]
    for number, operation in enumerate(row for row in done if row["name"] != "send"):
        await scribe.operation(operation["name"], number, operation["status"], operation.get("params") or {})
    message.stored = True
    message.arranged = scribe.run.version
    for draft in scribe.drafts:
        world.traffic.appended(draft)
    message.kept = message_fields(await world.history(message.key))
    if scribe.run.state != message.state:
        raise Unsupported(f"{message.id}: arranging came to {scribe.run.state} instead of {message.state}")


def _first_step(world: World, message: Message) -> str | None:
    """The step that the case's actions run first on this message."""
    for action in _flat(world.case.actions):
        if action.get("message") not in (None, message.id):
            continue
        if action["do"] == "run_step":
            return str(action["kind"])
        if action["do"] == "deliver" and str(action["command"]).startswith("run:"):
            return str(action["command"]).removeprefix("run:")
        if action["do"] in ("drain", "start"):
            return None
    return None


def _flat(actions: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for action in actions:
        if "actions" in action:
            yield from _flat(action["actions"])
        else:
            yield action
