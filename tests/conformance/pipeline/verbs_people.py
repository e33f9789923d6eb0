"""People's verbs: commands of a person at the gateway. Those without a counterpart in the product fail the case."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import people
from tests.conformance.pipeline.arranging import store
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.verbs import Action, verb
from tests.conformance.pipeline.world import World

from waybook.events.command import SignalPayload
from waybook.events.typed import Event
from waybook.inbox import events as ev
from waybook.services.commanding import bulk
from waybook.services.walker.requests import DecidePayload

COMMON = ("user", "message", "each", "concurrent", "command_id")
Say = Callable[[Action], Event]


async def say(world: World, action: Action, make: Say, *, words: Mapping[str, str] | None = None) -> None:
    """A person's word about each concerned message: an external event of the agent, carried by `signal`."""
    event = make(action)
    payload = SignalPayload(event=type(event).__name__, body=msgspec.Raw(msgspec.json.encode(event)))
    await give(world, action, "signal", payload, words=words)


async def give(
    world: World, action: Action, verb_name: str, payload: Any, *, words: Mapping[str, str] | None = None
) -> None:
    """A person's command, once or `concurrent` times at once, with an id of its own or the one of the case."""
    for message in world.concerned(action):
        await store(world, message)
        times = int(action.get("concurrent") or 1)
        asked = [await _one(world, action, message, verb_name, payload) for _ in range(times)]
        await world.settle()
        world.hear(people.outcome(one, human=True, words=words) for one in asked)


async def _one(world: World, action: Action, message: Message, verb_name: str, payload: Any) -> Any:
    return await world.client.give(
        message.key,
        verb_name,
        payload,
        actor=str(action.get("user", "u1")),
        command=action.get("command_id"),
        person=True,
    )


@verb("approve", *COMMON)
async def approve(world: World, action: Action) -> None:
    await give(world, action, "approve", DecidePayload())


@verb("reject", "reason", *COMMON)
async def reject(world: World, action: Action) -> None:
    await give(world, action, "reject", DecidePayload(reason=action.get("reason")))


@verb("approve_bulk", "ids", "user")
async def approve_bulk(world: World, action: Action) -> None:
    """Several at once, as the product's own limit lets them through: all, or none at all."""
    ids = list(world.messages) if action["ids"] == "all" else list(action["ids"])
    try:
        chosen = bulk.checked(ids)
    except bulk.TooMany as error:
        world.hear([{"ok": False, "reason": error.reason, "human": True}])
        return
    for name in chosen:
        await give(world, {**action, "message": name}, "approve", DecidePayload())


@verb("save_draft", "text", *COMMON)
async def save_draft(world: World, action: Action) -> None:
    now = world.clock.now()
    await say(world, action, lambda a: ev.DraftSaved(by=a["user"], text=a["text"], saved_at=now))


@verb("undo", *COMMON)
async def undo(world: World, action: Action) -> None:
    words = {"terminal": "already_sent"}
    await say(world, action, lambda a: ev.SendCancelled(by=a["user"]), words=words)
    await world.scheduling.tell()


@verb("block_sender", *COMMON)
async def block_sender(world: World, action: Action) -> None:
    await say(world, action, lambda a: ev.SenderBlocked(by=a["user"]))
    await world.scheduling.tell()


@verb("release_quarantine", *COMMON)
async def release_quarantine(world: World, action: Action) -> None:
    words = {"illegal_edge": "invalid_state"}  # how the cases call it for this verb
    await say(world, action, lambda a: ev.MailReleased(by=a["user"]), words=words)


@verb("answer", "answers", *COMMON)
async def answer(world: World, action: Action) -> None:
    await say(world, action, lambda a: ev.ClarificationAnswered(by=a["user"], answers=a["answers"]))


@verb("manual_retry", "how", *COMMON)
async def manual_retry(world: World, action: Action) -> None:
    world.resets = True
    await give(world, action, "retry", {"how": action["how"]} if "how" in action else None)


@verb("compensate", *COMMON)
async def compensate(world: World, action: Action) -> None:
    """A person has everything undone that the run has done outside."""
    await give(world, action, "compensate", {})


for _name in (
    "take_over", "request_reply", "dismiss_update", "archive_ended", "deploy", "receive_every",
):  # fmt: skip

    @verb(_name, any_member=True)
    async def _not_yet(world: World, action: Action) -> None:
        raise Unsupported(f"the verb `{action['do']}` has no counterpart in this build yet")
