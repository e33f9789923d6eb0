"""What passes between the workers of a dispatcher case and the outside, with its crash points."""

import asyncio
from random import Random

import msgspec
from tests.conformance.dispatcher.bodies import dawdle
from tests.conformance.pipeline.outside import Crash, Traffic

from waybook.engine.ports import Draft
from waybook.events.engine import RunEnded, StepCompleted
from waybook.events.subjects import RunKey, parse_state_subject


class CrashPoint(msgspec.Struct):
    """Where a worker is to be killed: at the commit with the result of the `execution`-th execution of a step.

    `point` as in the cases; `during_cleanup` is the commit that ends a run.
    """

    point: str
    step: str | None = None
    execution: int = 1
    stored: bool = True
    seen: int = 0


class DispatcherTraffic(Traffic):
    """Traffic whose appends may wait (`may_append`), and that knows the crash points of dispatcher cases."""

    point: CrashPoint | None = None

    def prepare(self, chance: Random | None = None) -> None:
        self._chance = chance
        self.under_way = 0  # appends that dawdle
        self.may_append = asyncio.Event()
        self.may_append.set()

    async def before_append(self, draft: Draft) -> Crash | None:
        await self.may_append.wait()
        self.under_way += 1
        try:
            await dawdle(self._chance)
        finally:  # its process may be killed meanwhile
            self.under_way -= 1
        key = parse_state_subject(draft.subject)
        if self.point is not None and self._is_at(self.point, key, draft):
            stored, self.point = self.point.stored, None
            return Crash(key, None, stored)
        return None

    def _is_at(self, point: CrashPoint, key: RunKey, draft: Draft) -> bool:
        events = self._commit(draft).events
        if point.point == "during_cleanup":
            return any(isinstance(event, RunEnded) for event in events)
        if point.point not in ("after_commit_before_ack", "between_outputs"):
            return False
        ended = [self._step_of(key, x.action) for x in events if isinstance(x, StepCompleted)]
        point.seen += ended.count(point.step)
        return point.step in ended and point.seen >= point.execution
