"""Histories that are recorded by playing a script, and cut: what a process finds whose predecessor came no further."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.backends import MemoryBackend
from tests.conformance.pipeline.choices import Choices
from tests.conformance.pipeline.history import History
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.verbs import perform
from tests.conformance.pipeline.world import World, opened

from waybook.engine.ports import Draft
from waybook.events import engine as e
from waybook.events.headers import COMMIT
from waybook.events.subjects import state_subject

Arrange = Callable[[World], Awaitable[None]]


async def arrange(world: World, given: Mapping[str, Any], arrange_script: Arrange) -> Message:
    """Plays the script in a world of its own and stores what it recorded, up to the cut, in this one.

    Both share the queue of commands, so that no later command takes the place of one that the history names.
    """
    if not isinstance(world.backend, MemoryBackend):
        raise Unsupported("given.log: a script is recorded in memory only")
    script = given["from"]
    case = msgspec.structs.replace(world.case, given=script["given"], actions=script["actions"], expect={})
    beside = MemoryBackend(beside=world.backend)
    async with opened(case, beside, Choices()) as other:
        await arrange_script(other)
        for action in script["actions"]:
            await perform(other, action)
        message = other.message()
        version = _cut(await other.history(message.key), str(given["cut_after"]))
        await _copy(other, world, message, version)
    return Message(message.id, message.key, message.given, message.mail, stored=True, hand_over=True, arranged=version)


def _cut(history: History, after: str) -> int:
    """The version of the first commit that holds the end of that step."""
    kind, _, step = after.partition(":")
    actions = history.run.actions if history.run is not None else {}
    for commit, _, _ in history.commits:
        ended = (event.action for event in commit.events if isinstance(event, e.StepCompleted))
        if kind == "StepCompleted" and any(actions[action].step == step for action in ended):
            return commit.version
    raise Unsupported(f"given.log.cut_after: the script records no {after}")


async def _copy(source: World, target: World, message: Message, version: int) -> None:
    subject, expected, number = state_subject(message.key), 0, 0
    async for record in source.backend.ports.state.history(subject):
        number += 1
        if number > version:
            return
        draft = Draft(subject, expected, record.payload, record.headers, record.headers.get(COMMIT, ""))
        expected = await target.backend.ports.state.append(draft)
        target.traffic.appended(draft)
