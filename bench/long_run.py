"""A run of many events: what one more decision costs, and how long it takes to load in a new process."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import msgspec

from waybook.engine.definition import Definition, Parameter, Step, Table
from waybook.engine.inputs import Completed, Delivered, Input, Output, Start, World
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Command
from waybook.events.engine import Claim
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.wiring import Wiring
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.snapshots import LongRuns

KEY = RunKey("long", "loop", "r1")
BODY = msgspec.Raw(b'{"number":1,"text":"what a step of a loop hands on"}')
LOOP = Definition.build(
    agent="loop",
    hash="0123456789abcdef",
    steps=(
        Step("even", (Parameter("event", ("Go", "Even")),), frozenset({"Odd"})),
        Step("odd", (Parameter("event", ("Odd",)),), frozenset({"Even"})),
    ),
    table=Table("running", frozenset({"running", "failed"}), frozenset({"completed", "cancelled"}), ()),
    kinds={"Go": "start", "Even": "plain", "Odd": "plain"},
    decode=lambda event, schema, payload: msgspec.json.decode(payload),
)


def output(event: str) -> Output:
    """An event of the loop."""
    return Output(event, 1, BODY, None)


class LongRun:
    """One run of a loop of two steps, on the ports of `wiring`."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._tasks: list[asyncio.Task[None]] = []

    def _lifecycle(self, *, snapshots: bool = True) -> Lifecycle:
        long_runs = LongRuns(self._wiring.snapshots, self._spawn) if snapshots else None
        return Lifecycle(self._wiring.state, Codec(), self._wiring.clock, "bench", long_runs=long_runs)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))

    async def grow(self, events: int) -> float:
        """Walks until the run has that many events; CPU time of one of the last decisions in ms."""
        lifecycle = self._lifecycle()
        command = Command(id="c", verb="start", issued_at=1, actor="bench", payload=msgspec.Raw(b"{}"))
        one: Input = Delivered(command, Start(output=output("Go")), Claim(1, 1, 1), 1)
        run: Run | None = None
        total = 0
        last: list[float] = []
        while total < events or not last:
            began = time.thread_time()
            decision = lifecycle.decide(LOOP, KEY, run, (one,), World())
            if total > events - 150:
                last.append((time.thread_time() - began) * 1000)
            run = (await lifecycle.store(LOOP, KEY, run, decision)).run
            assert run is not None
            total += len(decision.events)
            action = run.actions[next(iter(run.open))]
            one = Completed(action.id, (output("Odd" if action.step == "even" else "Even"),))
        await asyncio.gather(*self._tasks)
        return sum(last) / len(last)

    async def cold_ms(self, *, snapshot: bool) -> float:
        """Milliseconds until a process that knows nothing of the run has it folded."""
        began = time.perf_counter()
        run = await self._lifecycle(snapshots=snapshot).load(KEY)
        took = (time.perf_counter() - began) * 1000
        assert run is not None
        return took
