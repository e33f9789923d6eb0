"""The other side of side effects, in memory: what arrived there, and how often."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, NotThere, Unsure


class OtherSide:
    """An EffectAdapter that remembers what arrived, also for a new process.

    The first `refusals` calls are answered with an error, and nothing arrives; then `answers_lost` calls arrive and
    stay unanswered. `can_find`: it can be asked afterwards whether something arrived, as a sent mailbox or an API can.
    `evidence` is what it says of everything that arrived, such as a message id.
    """

    def __init__(
        self,
        *,
        refusals: int = 0,
        answers_lost: int = 0,
        can_find: bool = True,
        evidence: Mapping[str, Any] | None = None,
    ) -> None:
        self.call_ms = 30_000
        self.settle_ms = 0
        self.find_is_authoritative = can_find
        self.arrived: Counter[str] = Counter()
        self.taken_back: Counter[str] = Counter()
        self.params: dict[str, Any] = {}
        self._refusals = refusals
        self._answers_lost = answers_lost
        self._can_find = can_find
        self._evidence = dict(evidence or {})

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """It arrives."""
        deadline.check()
        if self._refusals > 0:
            self._refusals -= 1
            return NotDone("not now")
        self.arrived[call.key] += 1
        self.params[call.key] = call.params
        if self._answers_lost > 0:
            self._answers_lost -= 1
            return Unsure("the answer was lost")
        return Done({"number": sum(self.arrived.values()), **self._evidence})

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """Whether it arrived."""
        if not self._can_find:
            return Unsure("nobody can tell", again=False)
        return Done({"found": True, **self._evidence}) if self.arrived[call.key] else NotThere()

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """It is taken back."""
        deadline.check()
        self.taken_back[call.key] += 1
        return Done({})
