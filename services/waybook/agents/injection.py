"""What a step may ask for beside events, by type."""

from typing import Any, get_args, get_origin

from waybook.agents.approvals import Approvals
from waybook.agents.config import AgentConfig, StepConfig
from waybook.agents.context import StepContext
from waybook.agents.displayer import Displayer
from waybook.agents.effects import Effects
from waybook.agents.fixed_list import FixedList
from waybook.agents.identity import UserIdentity
from waybook.agents.ledgers import Ledgers
from waybook.agents.run_context import RunContext, ThreadContext
from waybook.events.typed import Event

ENGINE_PROVIDES: tuple[type, ...] = (
    StepContext,
    Approvals,
    Effects,
    Ledgers,
    RunContext,
    ThreadContext,
    Displayer,
    UserIdentity,
)
"""Types that the engine itself provides, beside the agent's and the step's configuration."""

PRECONDITION_MAY_ASK: tuple[type, ...] = (AgentConfig, StepConfig, RunContext, UserIdentity)
"""What a precondition may ask for beside events of its step."""


def is_config(kind: Any) -> bool:
    """Whether a type is an agent's configuration."""
    return isinstance(kind, type) and issubclass(kind, AgentConfig)


def is_step_config(kind: Any) -> bool:
    """Whether a type is a step's configuration."""
    return isinstance(kind, type) and issubclass(kind, StepConfig)


def name_of(kind: Any) -> str:
    """A type as messages name it."""
    arguments = get_args(kind)
    name = getattr(get_origin(kind) or kind, "__name__", None) or repr(kind)
    inner = ", ".join("..." if a is ... else name_of(a) for a in arguments)
    return f"{name}[{inner}]" if arguments else name


def instead_of(kind: Any) -> str | None:
    """What to write instead of a collection that events do not come in; None for what is none."""
    inner = [a for a in get_args(kind) if isinstance(a, type) and issubclass(a, Event)]
    if inner:
        return f"`list[{' | '.join(e.__name__ for e in inner)}]`"
    return "`list[E]`, or as `FixedList(E, N)`" if kind in (list, tuple, set, dict, FixedList) else None
