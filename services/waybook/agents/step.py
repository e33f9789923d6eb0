"""The `@step` mark on a method of an agent."""

from collections.abc import Callable
from difflib import get_close_matches
from types import FunctionType
from typing import Any, TypeVar, overload

import msgspec

from waybook.agents.config import StepConfig
from waybook.agents.errors import DefinitionError
from waybook.engine.definition import TEN_MINUTES_MS, RetryPolicy

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__waybook_step__"


class StepOptions(msgspec.Struct, frozen=True):
    """What an author says about a step beside its signature.

    `deadline_s` bounds one attempt (default 10 minutes). `max_executions` bounds the step's executions in a walk of a
    run. `stop_on_error` False: a failure is recorded and the run goes on. `depends`: functions and modules whose
    source belongs to the step's code hash. `precondition`: a `@precondition` that is asked before the step is
    scheduled. `config`: what the step gets where it asks for that `StepConfig`. `thread`: the step is a plain function
    that may block, and runs in a thread of its own.
    """

    retry: RetryPolicy = RetryPolicy()
    deadline_s: float = TEN_MINUTES_MS / 1000
    max_executions: int | None = None
    stop_on_error: bool = True
    depends: tuple[Any, ...] = ()
    precondition: Callable[..., Any] | None = None
    config: StepConfig | None = None
    thread: bool = False


@overload
def step(function: F, /) -> F: ...
@overload
def step(
    *,
    retry: RetryPolicy = ...,
    deadline_s: float = ...,
    max_executions: int | None = ...,
    max_executions_per_run: int | None = ...,
    stop_on_error: bool = ...,
    depends: tuple[Any, ...] = ...,
    precondition: Callable[..., Any] | None = ...,
    config: StepConfig | None = ...,
    thread: bool = ...,
) -> Callable[[F], F]: ...
def step(function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Marks a method as a step: its parameters' types are its inputs, its return type its outputs.

    Use it bare or with options (`StepOptions`); `max_executions_per_run` is another name of `max_executions`. The
    function itself stays as it is. Raises DefinitionError for an option that there is not, and for what is no method.
    """
    if "max_executions_per_run" in options:
        options["max_executions"] = options.pop("max_executions_per_run")
    for name in options:
        if name not in StepOptions.__struct_fields__:
            near = get_close_matches(name, StepOptions.__struct_fields__, 1, 0.5)
            meant = f"; is `{near[0]}` meant?" if near else ""
            raise DefinitionError(
                f"`@step` has no option `{name}`{meant} It takes {', '.join(StepOptions.__struct_fields__)}"
            )
    chosen = StepOptions(**options)

    def mark(target: F) -> F:
        if isinstance(target, staticmethod | classmethod):
            kind, name = type(target).__name__, target.__name__
            raise DefinitionError(
                f"`{name}` is a {kind}; a step is a method: write `async def {name}(self, ...)` alone"
            )
        if not isinstance(target, FunctionType):
            raise DefinitionError(
                f"`@step` marks a function, and got {type(target).__name__} {target!r}; write `async def` in the agent's class"
            )
        setattr(target, MARK, chosen)
        return target

    return mark(function) if function is not None else mark
