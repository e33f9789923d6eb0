"""The scripted mail service: it takes every mail and answers when a verb says so."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from tests.conformance.errors import Unsupported

from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, NotThere, Unsure

if TYPE_CHECKING:
    from tests.conformance.pipeline.world import World

NAMES = {"send": "mail"}
"""The cases' name of the side effect, and the product's."""

PRODUCT_ONLY = {v: k for k, v in NAMES.items()}

Answer = Done | NotDone | Unsure


class Taken(msgspec.Struct, eq=False):
    """A mail that the service took, and the answer that its caller waits for."""

    call: EffectCall
    answer: "asyncio.Future[Answer]"


class MailService:
    """An EffectAdapter. `find` answers by operation as the case gives it, else as `adapters.send` says."""

    def __init__(self, world: "World", given: Mapping[str, Any]) -> None:
        chosen = (given.get("adapters") or {}).get("send") or {}
        self.call_ms = round(float(chosen.get("deadline_s", 30)) * 1000)
        self.settle_ms = round(float(chosen.get("settle_s", 0)) * 1000)
        self.find_is_authoritative = bool(chosen.get("authoritative", False))
        self._world = world
        self._found = chosen.get("find")
        self.taken: list[Taken] = []
        self.given: dict[str, Mapping[str, Any]] = {}

    async def call(self, call: EffectCall, deadline: Deadline) -> Answer:
        """Takes the mail; the body then waits, and nothing of it moves."""
        taken = Taken(call, asyncio.get_running_loop().create_future())
        self.taken.append(taken)
        standing = [b for b in self._world.gate.bodies if str(b.run) == call.run and b.step == "send"]
        for body in standing:
            body.background = True
        try:
            async with asyncio.timeout(deadline.remaining_s):
                return await taken.answer
        finally:
            for body in standing:
                body.background = False

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """What the service says when it is asked for a key."""
        given = self.given.get(call.run, {})
        said = given.get("find", self._found)
        if isinstance(said, list):
            said = said.pop(0) if len(said) > 1 else said[0]
        if said == "found":
            return Done({"message_id": "found", "provider_id": given.get("provider_id", "found")})
        return NotThere() if said == "absent" else Unsure("the service does not say", again=said == "pending")

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Answer:
        """A mail that left cannot be taken back."""
        return NotDone("not undone", retryable=False)

    def last(self) -> Taken:
        """The mail that was taken last. Unsupported when there was none."""
        if not self.taken:
            raise Unsupported("no mail was taken")
        return self.taken[-1]
