"""An other side in memory: what it was asked to do, what it did, and what it answers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, NotThere, Unsure

Script = Callable[["Outside", EffectCall], Any]


class Outside:
    """An adapter whose calls go by a script, one entry a call, the last one for all that follow.

    `knows`: what `find` does not see then never happened; None: it cannot be asked at all.
    """

    def __init__(self, *script: str, knows: bool | None = True, call_ms: int = 30_000, settle_ms: int = 0) -> None:
        self.script = list(script) or ["done"]
        self.calls: list[EffectCall] = []
        self.made: list[EffectCall] = []
        self.undone: list[str] = []
        self.asked = 0
        self.go_on = asyncio.Event()
        self.knows = knows
        self.call_ms = call_ms
        self.settle_ms = settle_ms

    @property
    def find_is_authoritative(self) -> bool:
        return bool(self.knows)

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """`done`, `lost` (made, no answer), `unsure` (not made, no answer), `failed`, `rejected`, `held` (till go_on)."""
        word = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        self.calls.append(call)
        if word == "held":
            await self.go_on.wait()
        deadline.check()
        if word in ("done", "lost", "held"):
            self.made.append(call)
        if word in ("failed", "rejected"):
            return NotDone("no", retryable=word == "failed")
        return Unsure("no answer") if word in ("lost", "unsure") else Done({"id": len(self.made)})

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """See EffectAdapter."""
        self.asked += 1
        if self.knows is None:
            return Unsure("nobody to ask", again=False)
        if any(m.idempotency_key == call.idempotency_key for m in self.made):
            return Done({"id": "found"})
        return NotThere()

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        word = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if word in ("done", "lost"):
            self.undone.append(call.key)
        return Done() if word == "done" else Unsure("no answer")
