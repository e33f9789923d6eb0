"""Direct lifecycle calls: transition, transition_matrix, static_check."""

from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import people
from tests.conformance.pipeline.arranging import arrange_extra, store
from tests.conformance.pipeline.client import Asked
from tests.conformance.pipeline.names import to_product
from tests.conformance.pipeline.outside import Crash
from tests.conformance.pipeline.source import writers_of_state
from tests.conformance.pipeline.verbs import Action, verb
from tests.conformance.pipeline.world import Outcome, World

from waybook.events.subjects import RunKey

CALL = frozenset({"do", "expect", "to", "message", "each", "source", "reason", "userId", "crash"})
"""Members of a transition that are no fields."""

UNREAD = frozenset({"completedActionId", "failingActionId", "walk"})


@verb("transition", any_member=True)
async def transition(world: World, action: Action) -> None:
    """A direct lifecycle call; the legal edges apply, the gates of the route step do not."""
    unread = UNREAD & set(action)
    if unread:
        raise Unsupported(f"`transition`: the members {', '.join(sorted(unread))} are not interpreted yet")
    for key in [m.key for m in await _stored(world, action)] or [people.stranger(action["message"])]:
        world.hear([await attempt(world, key, action)])


async def _stored(world: World, action: Action) -> list[Any]:
    name = action.get("message")
    if name is not None and name not in world.messages:
        return []
    messages = world.concerned(action)
    for message in messages:
        await store(world, message)
    return messages


async def attempt(world: World, key: RunKey, action: Action) -> Outcome:
    """One call and its answer, with the states between which it was."""
    run = (await world.history(key)).run
    if action.get("crash") is not None:
        world.traffic.crash = Crash(key, None, _is_stored(world, action["crash"]))
    payload = {"to": action["to"], "fields": _fields(action), "reason": action.get("reason")}
    actor = action.get("userId") or action.get("source") or "pipeline"
    asked = await world.client.give(key, "move", payload, actor=actor)
    await world.settle()
    if run is None:
        await world.until_answered(asked)
    outcome = _outcome(asked)
    if run is not None:
        outcome["from"] = run.state
    outcome["to"] = action["to"]
    return outcome


def _outcome(asked: Asked) -> Outcome:
    return people.outcome(asked, human=False)


def _is_stored(world: World, point: str) -> bool:
    if point == "during_commit":
        return world.choices.choose("during_commit", 2) == 0
    if point in ("before_commit", "after_commit"):
        return point == "after_commit"
    raise Unsupported(f"`transition`: the crash point {point} is not interpreted")


def _fields(action: Action) -> dict[str, Any]:
    """The fields that this call writes with the status."""
    fields = to_product({k: v for k, v in action.items() if k not in CALL})
    if action["to"] == "archived" and action.get("reason") is not None:
        fields.setdefault("archive_reason", action["reason"])
    if action["to"] == "approved" and action.get("source") in ("auto", "human"):
        fields.setdefault("approval_source", action["source"])
    return dict(fields)


@verb("transition_matrix", "pairs", "actors")
async def transition_matrix(world: World, action: Action) -> None:
    """One fresh message for each pair, put into its first state directly, one attempt."""
    if action.get("actors"):
        raise Unsupported("`transition_matrix`: actors are not interpreted yet")
    for number, (before, after) in enumerate(action["pairs"]):
        message = await arrange_extra(world, f"pair-{number}", {"state": before})
        world.matrix.append(await attempt(world, message.key, {"do": "transition", "to": after}))


@verb("static_check", "what")
async def static_check(world: World, action: Action) -> None:
    """Which modules of the source tree append to STATE."""
    if action["what"] != "writers of processingStatus":
        raise Unsupported(f"`static_check` of {action['what']!r} is not interpreted")
    world.writers = writers_of_state()
