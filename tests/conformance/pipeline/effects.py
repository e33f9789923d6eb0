"""Side effects of a case: scripted adapters of the product's port, and what its steps are to do with them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.conformance.pipeline.fuse import Fuse

from waybook.agents.context import StepContext
from waybook.agents.effects import Deadline, Done, EffectAdapter, EffectCall, Effects, NotDone, NotThere, Unsure

UNDO = "undo:"


class ScriptedEffects:
    """The other sides of a case, alike for all its workers; what was called, in order.

    `adapters` of the case say what calls and questions are answered, one entry each, the last for all that follow.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._scripts: Mapping[str, Mapping[str, Sequence[str]]] = given.get("adapters") or {}
        self._steps: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]] = given.get("step_effects") or {}
        self._asked: dict[tuple[str, str], int] = {}
        self.calls: list[EffectCall] = []
        self.crash_after_call = False

    @property
    def names(self) -> set[str]:
        """The effects that the case speaks of."""
        scripted = {name.removeprefix(UNDO) for name in self._scripts}
        called = {one["name"] for attempts in self._steps.values() for attempt in attempts for one in attempt}
        return scripted | called

    def adapters(self, fuse: Fuse) -> dict[str, EffectAdapter]:
        """The adapters as one worker reaches them."""
        return {name: ScriptedAdapter(self, fuse) for name in self.names}

    async def make(self, step: str, context: StepContext, effects: Effects) -> None:
        """What a body of this step does outside: by attempt, the last entry for all that follow."""
        attempts = self._steps.get(step) or []
        for one in attempts[min(context.attempt, len(attempts)) - 1] if attempts else []:
            await effects.run(one["name"], one.get("params") or {})

    def answer(self, name: str, question: str, default: Callable[[], str]) -> str:
        """The next answer to `call` or `find` of that effect."""
        answers = self._scripts.get(name, {}).get(question) or []
        if not answers:
            return default()
        number = self._asked.get((name, question), 0)
        self._asked[name, question] = number + 1
        return answers[min(number, len(answers) - 1)]


class ScriptedAdapter:
    """One worker's way to the other side; a dead worker reaches nothing and hears nothing."""

    call_ms = 30_000
    settle_ms = 0
    find_is_authoritative = True

    def __init__(self, effects: ScriptedEffects, fuse: Fuse) -> None:
        self._effects = effects
        self._fuse = fuse

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        await self._fuse.check()
        deadline.check()
        self._effects.calls.append(call)
        if self._effects.crash_after_call:
            self._effects.crash_after_call = False
            self._fuse.blow()
        await self._fuse.check()
        said = self._effects.answer(call.name, "call", lambda: "succeeded")
        return Done() if said == "succeeded" else NotDone(said) if said == "failed" else Unsure(said)

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        return await self.call(call, deadline)

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """See EffectAdapter."""
        await self._fuse.check()
        made = any(c.idempotency_key == call.idempotency_key for c in self._effects.calls)
        said = self._effects.answer(call.name, "find", lambda: "found" if made else "absent")
        return Done() if said == "found" else NotThere() if said == "absent" else Unsure(said)
