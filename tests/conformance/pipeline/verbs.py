"""The registry of verbs: what a case's `do` may say, and with which members."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.world import World

Action = dict[str, Any]
Perform = Callable[[World, Action], Awaitable[None]]


class Verb(msgspec.Struct, frozen=True):
    """`members` are those that the verb reads; None: it reads all."""

    perform: Perform
    members: frozenset[str] | None


RESETS = frozenset({"retry_failed", "manual_retry", "release_quarantine"})
"""Verbs and jobs after which a run may already stand beyond `received`."""

VERBS: dict[str, Verb] = {}


def verb(name: str, *members: str, any_member: bool = False) -> Callable[[Perform], Perform]:
    """Registers a verb with the members that it reads beside `do` and `expect`."""

    def register(perform: Perform) -> Perform:
        VERBS[name] = Verb(perform, None if any_member else frozenset(members) | {"do", "expect"})
        return perform

    return register


async def perform(world: World, action: Action) -> None:
    """Does one action. Unsupported for a verb, or a member of one, that this runner does not read."""
    known = VERBS.get(action["do"])
    if known is None:
        raise Unsupported(f"the verb `{action['do']}` is not interpreted yet")
    unread = set(action) - known.members if known.members is not None else set()
    if unread:
        raise Unsupported(f"`{action['do']}`: the members {', '.join(sorted(unread))} are not interpreted yet")
    world.staff()
    world.resets = world.resets or action["do"] in RESETS or action.get("job") in RESETS
    await known.perform(world, action)
