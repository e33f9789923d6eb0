"""What the outside parts do in a case: results of steps, failures on demand, scripted models."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import results
from tests.conformance.pipeline.fuse import Fuse
from tests.conformance.pipeline.gate import Body, Order
from tests.conformance.pipeline.override import override

from waybook.agents.context import StepContext
from waybook.agents.reading import StepBody
from waybook.engine.ports import Clock
from waybook.inbox.settings import InboxSettings


class StepBroke(Exception):
    """What the work of a step raises because the case says so."""


class Script:
    """Carries out a step's work as the case has it; by default it is the product's own."""

    def __init__(self, given: Mapping[str, Any], settings: InboxSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._fail_once = _steps(given.get("fail_once"))
        self._always_fail = _steps(given.get("always_fail"))
        self._always_crash = _steps(given.get("always_crash"))
        self._resumed = asyncio.Event()
        self.problem: Exception | None = None

    async def work(
        self,
        body: StepBody,
        agent: Any,
        arguments: dict[str, Any],
        context: StepContext,
        waiting: Body,
        order: Order | None,
        fuse: Fuse,
    ) -> Any:
        """The work of one attempt, between the gate and its commit."""
        order = order or Order(waiting.run, waiting.step)
        names = {waiting.step, f"{waiting.step}:{waiting.branch}"}
        if order.background:
            waiting.background = True
            await self._resumed.wait()
            waiting.background = False
        if names & self._always_crash:
            fuse.blow()
            await fuse.check()
        if order.throws is not None:
            raise StepBroke(order.throws)
        if names & (self._always_fail | self._fail_once):
            self._fail_once -= names
            raise StepBroke(f"{waiting.step} fails, as the case says")
        try:
            arguments = override(arguments, order.input)
        except Unsupported as error:
            self.problem = error
            raise
        if order.output is not msgspec.UNSET:
            returned = results.from_output(body.name, order.output, arguments, self._settings, self._clock.now())
        elif body.is_async:
            returned = await body.function(agent, **arguments)
        else:
            returned = await asyncio.to_thread(body.function, agent, **arguments)
        if order.route_throws is not None:
            raise StepBroke(order.route_throws)
        return returned

    def resume(self) -> None:
        """The work that is held in the background goes on."""
        self._resumed.set()


def _steps(value: Any) -> set[str]:
    if value is None:
        return set()
    return {value} if isinstance(value, str) else set(value)
