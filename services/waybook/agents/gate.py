"""From an author's precondition to the question that the engine asks."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from waybook.agents.config import AgentConfig, StepConfig
from waybook.agents.errors import NotPure
from waybook.agents.identity import UserIdentity
from waybook.agents.injection import is_config, is_step_config
from waybook.agents.run_context import RunContext
from waybook.agents.signature import Signature
from waybook.engine.definition import Decode, Gate, Step
from waybook.engine.dispatch import bind
from waybook.engine.errors import text_of
from waybook.engine.run import Published, Run


def gate(
    function: Callable[..., Any],
    signature: Signature,
    *,
    config: type[AgentConfig],
    step_config: StepConfig | None,
    decode: Decode,
) -> Gate:
    """The precondition `function` as the engine asks it: bound to the log up to the trigger, like its step."""
    asks = Step(function.__name__, signature.parameters)

    def ask(run: Run, trigger: Published) -> bool | None:
        bindings = bind(asks, run, trigger)
        if bindings is None:
            return None
        arguments = bound_events(run, bindings, asks, decode)
        for name, kind in signature.injected.items():
            arguments[name] = injected(kind, run, config, step_config)
        try:
            return bool(_at_once(function(**arguments)))
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:  # `sys.exit()`, a panic: the process is not a precondition's to end
            raise NotPure(f"a precondition raised {text_of(error)}") from error

    ask.__name__ = function.__name__
    return ask


def injected(kind: Any, run: Run, config: type[AgentConfig], step_config: StepConfig | None) -> Any:
    """What a parameter gets that is filled from the run alone; KeyError for another type."""
    if is_config(kind):
        return msgspec.convert(dict(run.configuration), config)
    if is_step_config(kind):
        return step_config
    if kind is RunContext:
        return RunContext(run.context, read_only=True)
    if kind is UserIdentity:
        return UserIdentity(run.user) if run.user is not None else None
    raise KeyError(kind)


def bound_events(run: Run, bindings: Mapping[str, Any], step: Step, decode: Decode) -> dict[str, Any]:
    """The events that fill each parameter, as their typed selves."""
    arguments: dict[str, Any] = {}
    for parameter in step.parameters:
        bound = bindings[parameter.name]
        if bound is None:
            arguments[parameter.name] = None
            continue
        names = {bound} if isinstance(bound, str) else set(bound)
        found = [p for t in parameter.types for p in run.visible.get(t, ()) if p.name in names]
        found.sort(key=lambda p: p.ordinal)
        events = [decode(p.event, p.schema, p.payload) for p in found]
        arguments[parameter.name] = events[0] if isinstance(bound, str) else events
    return arguments


def _at_once(answer: Any) -> Any:
    """The answer of a function that may be written with `async`, but may not wait. Raises NotPure."""
    if not inspect.iscoroutine(answer):
        return answer
    try:
        answer.send(None)
    except StopIteration as done:
        return done.value
    answer.close()
    raise NotPure("a precondition must not wait for anything; let a step find it out and return it as an event")
