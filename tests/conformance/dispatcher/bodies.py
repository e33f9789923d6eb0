"""The steps' bodies of a case, seen while they run: which are held, how often they ran, which ran side by side."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from random import Random
from typing import Any

import msgspec

from waybook.agents.context import StepContext
from waybook.agents.reading import StepBody
from waybook.events.subjects import RunKey

CONTEXT = "conformance_context"
_attempt: ContextVar[int] = ContextVar("attempt", default=0)


async def dawdle(chance: Random | None) -> None:
    """Lets others go first, as often as chance will have it."""
    if chance is not None:
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)


def attempt_now() -> int:
    """Which attempt at its execution the running body is."""
    return _attempt.get()


class Running(msgspec.Struct, eq=False):
    """A body that has begun and not ended."""

    run: RunKey
    step: str
    action: str
    lives: Callable[[], bool]
    waits: bool = False


class Bodies:
    """Wraps bodies. `held` names steps whose bodies may not end; `crash` is asked at every beginning."""

    def __init__(self, chance: Random | None = None) -> None:
        self._chance = chance
        self.held: set[str] = set()
        self.together: frozenset[str] = frozenset()
        self.running: list[Running] = []
        self.runs: Counter[tuple[RunKey, str]] = Counter()
        self.overlapped = False
        self.crash: Callable[[RunKey, str], bool] = lambda run, step: False
        self._changed = asyncio.Event()

    def release(self, step: str) -> None:
        self.held.discard(step)
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def wrapped(self, body: StepBody, lives: Callable[[], bool], kill: Callable[[], None]) -> StepBody:
        """The body as it runs in a case."""

        async def function(agent: Any, **arguments: Any) -> Any:
            context: StepContext = arguments.pop(CONTEXT)
            running = Running(context.key, body.name, context.action, lives)
            self.runs[context.key, body.name] += 1
            self.running.append(running)
            token = _attempt.set(context.attempt)
            try:
                if self.crash(context.key, body.name):
                    kill()
                    await asyncio.get_running_loop().create_future()
                await dawdle(self._chance)
                self._look_for_overlap(context.key)
                if body.name in self.together:
                    await self._until(running, lambda: self.overlapped)
                try:
                    returned = body.function(agent, **arguments)
                    return await returned if asyncio.iscoroutine(returned) else returned
                finally:
                    await self._until(running, lambda: body.name not in self.held)
            finally:
                _attempt.reset(token)
                self.running.remove(running)

        injected = {**body.signature.injected, CONTEXT: StepContext}
        signature = msgspec.structs.replace(body.signature, injected=injected)
        return msgspec.structs.replace(body, function=function, signature=signature, is_async=True)

    async def _until(self, running: Running, holds: Callable[[], bool]) -> None:
        while not holds():
            running.waits = True
            changed = self._changed
            await changed.wait()
        running.waits = False

    def _look_for_overlap(self, run: RunKey) -> None:
        now = {r.step for r in self.running if r.run == run}
        if self.together and self.together <= now:
            self.overlapped = True
            self._wake()
