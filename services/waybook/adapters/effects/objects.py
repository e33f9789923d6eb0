"""Writing an object into the bucket `artifacts`, found again by its name and bytes."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from waybook.adapters.effects.content import content_of
from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, NotThere, Unsure
from waybook.engine.intents import CALL_MS
from waybook.engine.ports import Objects, PortError
from waybook.events.errors import InvalidInput

SETTLE_MS = 30_000
"""A write that was sent may be worked off by the server so long after its deadline."""


class ObjectWrite:
    """Writes objects. Parameters: `name`, and the content (`text`, `base64` or `artifact`). Nothing is undone.

    A second write of the same bytes under the same name changes nothing, so `find` may be believed.
    """

    settle_ms = SETTLE_MS
    find_is_authoritative = True

    def __init__(self, objects: Objects, *, call_ms: int = CALL_MS) -> None:
        self.call_ms = call_ms
        self._objects = objects

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        try:
            name, data = _name(call), await content_of(call.params, self._objects)
        except InvalidInput as error:
            return NotDone(str(error), retryable=False)
        except PortError as error:
            return NotDone(str(error))
        deadline.check()
        try:
            await self._objects.put(name, data)
        except PortError as error:
            return Unsure(str(error))
        return Done(_evidence(name, data))

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """See EffectAdapter."""
        try:
            name, data = _name(call), await content_of(call.params, self._objects)
            there = await self._objects.get(name) == data
        except KeyError:
            return NotThere()
        except InvalidInput as error:
            return Unsure(str(error), again=False)
        except PortError as error:
            return Unsure(str(error))
        return Done(_evidence(name, data)) if there else NotThere()

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        return NotDone("objects are kept: nothing is undone", retryable=False)


def _name(call: EffectCall) -> str:
    """Raises InvalidInput. Names that the engine uses are not given away."""
    name = call.params.get("name")
    if not isinstance(name, str) or not name.strip() or name.startswith("effects/"):
        raise InvalidInput("`name` has to name an object, and not one below effects/")
    return name


def _evidence(name: str, data: bytes) -> dict[str, Any]:
    return {"object": name, "bytes": len(data), "sha256": sha256(data).hexdigest()}
