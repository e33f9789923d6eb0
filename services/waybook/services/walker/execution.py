"""Runs one attempt of a step: binds its events, injects what it asks for, keeps its deadline."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Coroutine, Generator, Mapping
from functools import partial
from typing import Any, Protocol

from waybook.agents.approvals import Approvals
from waybook.agents.context import StepContext
from waybook.agents.definition import AgentDefinition
from waybook.agents.displayer import Displayer
from waybook.agents.effects import Effects, OperationFailed
from waybook.agents.errors import MOST_WAIT_S, RetryAfter, StepDeadlinePassed
from waybook.agents.gate import injected
from waybook.agents.ledgers import Ledgers
from waybook.agents.model import ModelRateLimited
from waybook.agents.reading import StepBody
from waybook.agents.run_context import RunContext, ThreadContext
from waybook.engine.errors import text_of
from waybook.engine.hooks import Hook, ModelCallsUncounted, StepRemarked, ignore
from waybook.engine.inputs import Completed, Failed
from waybook.engine.ports import Clock, PortError
from waybook.engine.run import Action, Run
from waybook.events.engine import Failure
from waybook.events.errors import TerminalError
from waybook.events.typed import DisplayEvent
from waybook.services.walker.effects import EffectsDesk
from waybook.services.walker.meter import Meter

log = logging.getLogger(__name__)

PORT_PAUSE_S = 0.5


class Beside(Protocol):
    """What stands beside the run: its thread, and who watches."""

    async def thread_context(self, run: Run) -> Mapping[str, Any]:
        """The context of the run's thread by the leader's word. Raises PortError."""
        ...

    async def display(
        self, definition: AgentDefinition, run: Run, action: Action, event: DisplayEvent, offset: int
    ) -> None:
        """Sends a display event to who watches; best effort."""
        ...


class Executor:
    """Runs bodies for one process. `provides` maps a type that a step may ask for to the object it gets.

    `effects` makes side effects, `beside` is what threads and watchers need. `meter` is told what models used,
    `hook` what they did not tell.
    """

    def __init__(
        self,
        provides: Mapping[type, Any],
        clock: Clock,
        effects: EffectsDesk,
        beside: Beside | None = None,
        meter: Meter | None = None,
        hook: Hook = ignore,
    ) -> None:
        self._provides = provides
        self._effects = effects
        self._clock = clock
        self._beside = beside
        self._meter = meter
        self._hook = hook

    async def run(self, definition: AgentDefinition, run: Run, action: Action) -> Completed | Failed:
        """The attempt's result. Whatever the body raises is a Failed; a port that is away is waited for."""
        body = definition.bodies[action.step]
        context = _context(run, action) if body.signature.injected else None
        began = time.perf_counter()
        try:
            returned = await self._call(definition, body, run, action, context)
            outputs = definition.outputs(action.step, returned)
        except asyncio.CancelledError as error:
            if _is_stopped_from_outside():
                raise
            # Something that the body waited for was cancelled, not the body.
            return self._failed(action, error, began, context)
        except (KeyboardInterrupt, GeneratorExit):
            raise  # meant for the process, not for the step
        except BaseException as error:  # noqa: BLE001  whatever else a step raises is its failure, `sys.exit()` included
            if context is not None and context.model is not None:
                await self._count(run, action, context)
            return self._failed(action, error, began, context)
        if context is None:
            return Completed(action.id, outputs, _elapsed(began))
        if context.model is not None:
            await self._count(run, action, context)
        for word in context.remarks:
            self._hook(StepRemarked(run.key.agent, action.step, word))
        return Completed(
            action=action.id,
            outputs=outputs,
            duration_ms=_elapsed(began),
            model=context.model,
            usage=context.usage,
            contracts=context.contracts,
            context=context.changes(RunContext),
            thread_context=context.changes(ThreadContext),
        )

    async def _count(self, run: Run, action: Action, context: StepContext) -> None:
        if context.uncounted:
            self._hook(ModelCallsUncounted(run.key.agent, action.step, context.uncounted))
        if self._meter is not None:
            await self._meter.used(run, action, context.model, context.usage, context.estimate)

    async def _call(
        self, definition: AgentDefinition, body: StepBody, run: Run, action: Action, context: StepContext | None
    ) -> Any:
        while True:
            try:
                if body.asks_thread and context is not None:
                    context.own[ThreadContext] = await self._thread_context(run)
                arguments = self._arguments(definition, body, run, action, context)
                if body.is_async:
                    work = body.function(definition.agent(), **arguments)
                else:
                    work = asyncio.to_thread(body.function, definition.agent(), **arguments)
                try:
                    waits_for = work.send(None)
                except StopIteration as done:  # many never wait, and what does not wait cannot be stopped
                    return done.value
                left = (action.deadline - self._clock.now()) / 1000
                return await _within(left, body.name, _Begun(work, waits_for))
            except PortError as error:
                log.warning("a step waits for a port", extra={"action": "step_waits_for_port", "error": str(error)})
                await asyncio.sleep(PORT_PAUSE_S)
                if context is not None:
                    context.contracts = ()  # the body runs again, and asks again

    async def _thread_context(self, run: Run) -> ThreadContext:
        return ThreadContext(await self._beside.thread_context(run) if self._beside is not None else {})

    def _arguments(
        self, definition: AgentDefinition, body: StepBody, run: Run, action: Action, context: StepContext | None
    ) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for name, bound in action.bindings.items():
            if isinstance(bound, str):
                arguments[name] = _event(definition, run, bound)
            elif bound is None:
                arguments[name] = None
            else:
                arguments[name] = [_event(definition, run, one) for one in bound]
        if context is not None:
            for name, kind in body.signature.injected.items():
                arguments[name] = self._injected(definition, body, run, action, kind, context)
        return arguments

    def _injected(
        self,
        definition: AgentDefinition,
        body: StepBody,
        run: Run,
        action: Action,
        kind: type[Any],
        context: StepContext,
    ) -> Any:
        if kind is StepContext:
            return context
        if kind in self._provides:
            return self._provides[kind]
        if kind is Approvals:
            return Approvals(context, definition.engine.kinds)
        if kind is Effects:
            return self._effects.of(run, action)
        if kind is Ledgers:
            return self._effects.ledgers(run, action)
        if kind is RunContext:
            context.own[RunContext] = RunContext(run.context)
            return context.own[RunContext]
        if kind is ThreadContext:
            return context.own[ThreadContext]
        if kind is Displayer:
            beside = self._beside
            return Displayer(partial(beside.display, definition, run, action) if beside is not None else _nowhere)
        return injected(kind, run, definition.agent.config, body.options.config)

    def _failed(self, action: Action, error: BaseException, began: float, context: StepContext | None) -> Failed:
        not_before = None
        wait_ms = _wait_ms(error)
        if wait_ms is not None:
            not_before = self._clock.now() + wait_ms
        failure = Failure(type(error).__name__, text_of(error), not isinstance(error, TerminalError | SystemExit))
        log.info("step failed", extra={"action": "step_failed", "step": action.step, "error": failure.text})
        return Failed(
            action=action.id,
            error=failure,
            duration_ms=_elapsed(began),
            not_before=not_before,
            model=context.model if context is not None else None,
            usage=context.usage if context is not None else None,
        )


def not_storable(result: Completed | Failed, error: Exception) -> Failed | None:
    """The failure of a step whose result no commit can hold; None where nothing is left of it to take away."""
    failure = Failure(type(error).__name__, text_of(error), retryable=False)
    if isinstance(result, Completed):
        return Failed(result.action, failure, result.duration_ms, model=result.model, usage=result.usage)
    bare = Failed(result.action, failure, result.duration_ms)
    return bare if result.model is not None or result.usage is not None or result.error.type != failure.type else None


async def _nowhere(event: DisplayEvent, offset: int) -> None:
    """Where nothing shows display events."""


STEP_FLAGS = "step_flags"
"""A companion field by which a lifecycle table tells steps something: names that are added to their flags."""


def _context(run: Run, action: Action) -> StepContext:
    return StepContext(
        key=run.key,
        step=action.step,
        action=action.id,
        execution=f"{run.key}/{action.execution}",
        attempt=action.attempt,
        flags=(*run.flags, *run.fields.get(STEP_FLAGS, ())),
        thread=run.thread,
        branch=action.branch,
    )


async def _within(seconds: float, step: str, work: Awaitable[Any]) -> Any:
    """Awaits `work` in the running task. Raises StepDeadlinePassed when that takes longer than `seconds`.

    What `asyncio.timeout` does, but the clock is only set when the body waits for something for the first time.
    """
    task = asyncio.current_task()
    assert task is not None
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    handle = asyncio.get_running_loop().call_later(max(0.0, seconds), expire)
    try:
        return await work
    except asyncio.CancelledError as error:
        if expired and task.cancelling() == 1:  # nobody else asked for it
            raise StepDeadlinePassed(f"step {step} ran longer than its deadline") from error
        raise
    finally:
        handle.cancel()
        if expired:
            task.uncancel()  # also when the body swallowed it: the task goes on with the result


class _Begun:
    """The rest of a coroutine that has come to its first wait, for `waited_for`."""

    def __init__(self, work: Coroutine[Any, Any, Any], waited_for: Any) -> None:
        self._work = work
        self._waited_for = waited_for

    def __await__(self) -> Generator[Any, Any, Any]:
        work, waited_for = self._work, self._waited_for
        try:
            while True:
                try:
                    sent = yield waited_for
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:  # noqa: BLE001  whatever it is, the body gets it
                    waited_for = work.throw(error)
                else:
                    waited_for = work.send(sent)
        except StopIteration as done:
            return done.value


def _event(definition: AgentDefinition, run: Run, name: str) -> Any:
    published = run.event(name)
    return definition.decode(published.event, published.schema, published.payload)


def _is_stopped_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _elapsed(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)


def _wait_ms(error: BaseException) -> int | None:
    """How long the other side asked to wait, a year at most; None when it did not."""
    if isinstance(error, RetryAfter):
        return round(error.seconds * 1000)
    asked = error.retry_after_ms if isinstance(error, ModelRateLimited | OperationFailed) else None
    return min(asked, round(MOST_WAIT_S * 1000)) if asked is not None else None
