"""An agent whose middle step fails as the other side does."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence

from waybook.agents import Agent, StartEvent, StopEvent, step
from waybook.agents.context import StepContext
from waybook.engine.run import Run
from waybook.events.typed import Event


class Go(StartEvent, frozen=True, kw_only=True):
    """The run begins."""


class Prepared(Event, frozen=True, kw_only=True):
    """The first step is done."""


class Asked(Event, frozen=True, kw_only=True):
    """The other side answered."""


class Done(StopEvent, frozen=True, kw_only=True):
    """The run is over."""


class Fails:
    """Fails the first `times` calls of each run."""

    def __init__(self, times: int, error: Callable[[], Exception] = lambda: RuntimeError("no answer")) -> None:
        self._times = times
        self._error = error

    def __call__(self, call: int) -> None:
        if call <= self._times:
            raise self._error()


class Side:
    """The other side: what the middle step asks, how often each step was at work, and when it was asked (ms UTC)."""

    def __init__(
        self,
        answer: Callable[[int], None] = lambda call: None,
        now: Callable[[], int] = lambda: time.time_ns() // 10**6,
    ) -> None:
        self._answer = answer
        self._now = now
        self.calls: Counter[str] = Counter()
        self.at: list[tuple[str, int]] = []

    def ask(self, run: str) -> None:
        """One call; raises what the other side answers."""
        self.calls["ask"] += 1
        self.calls[run] += 1
        self.at.append((run, self._now()))
        self._answer(self.calls[run])

    async def gate(self) -> None:
        """What the answer waits for: nothing."""


class HangingSide(Side):
    """A side whose answer never comes; `asked` says that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def gate(self) -> None:
        self.asked.set()
        await asyncio.Event().wait()


class Flaky(Agent):
    """prepare, ask, finish; `ask` fails as the other side does."""

    name = "flaky"

    @step
    async def prepare(self, go: Go, side: Side) -> Prepared:
        side.calls["prepare"] += 1
        return Prepared()

    @step
    async def ask(self, prepared: Prepared, side: Side, context: StepContext) -> Asked:
        side.ask(context.key.run)
        await side.gate()
        return Asked()

    @step
    async def finish(self, asked: Asked) -> Done:
        return Done()


def attempts(run: Run, name: str) -> Sequence[str]:
    """How the attempts at a step ended, in order."""
    return [a.status for a in run.actions.values() if a.step == name]
