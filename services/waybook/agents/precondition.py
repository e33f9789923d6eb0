"""The `@precondition` mark: a question that is asked before a step is scheduled."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

PRECONDITION = "__waybook_precondition__"


@overload
def precondition(function: F, /) -> F: ...
@overload
def precondition() -> Callable[[F], F]: ...
def precondition(function: F | None = None, /) -> F | Callable[[F], F]:
    """Marks a function as a precondition, to be given to `@step(precondition=...)`. Use it bare or called.

    Its parameters are filled by type, like the step's and from the same moment of the log; it may take event types of
    its step, `AgentConfig`, `StepConfig`, `RunContext` and `UserIdentity`. It answers whether the step may run now.
    It is asked whenever an event of one of the step's types is stored, perhaps several times for one event: it must
    be pure, and must not wait (it may be written with `async`). One that raises fails the run.
    """

    def mark(target: F) -> F:
        setattr(target, PRECONDITION, True)
        return target

    return mark(function) if function is not None else mark
