"""The base class of agents."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from waybook.agents.config import AgentConfig
from waybook.agents.schedule import Schedule
from waybook.agents.step import MARK
from waybook.engine.definition import Table, default_table

REPLACED = "__waybook_replaced__"
"""Attribute of an agent's class: steps that something else of the same name replaced in the same class body."""


class _Body(dict[str, Any]):
    """The names of a class body while it runs; keeps the steps that are replaced under their own name."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[Any] = []

    def __setitem__(self, name: str, value: Any) -> None:
        before = self.get(name)
        if hasattr(before, MARK) and value is not None and before not in _layers(value):
            self.replaced.append(before)
        super().__setitem__(name, value)


def _layers(value: Any) -> Iterator[Any]:
    """A function and those that its decorators wrap."""
    while value is not None:
        yield value
        value = getattr(value, "__wrapped__", None)


class AgentType(type):
    """The type of agent classes: looks at the class body while it runs, where a second step silently replaces the first."""

    @classmethod
    def __prepare__(metacls, name: str, bases: tuple[type, ...], /, **kwargs: Any) -> _Body:
        return _Body()

    def __new__(metacls, name: str, bases: tuple[type, ...], body: Mapping[str, Any], **kwargs: Any) -> "AgentType":
        made = super().__new__(metacls, name, bases, dict(body), **kwargs)
        setattr(made, REPLACED, tuple(body.replaced) if isinstance(body, _Body) else ())
        return made


class Agent(metaclass=AgentType):
    """An agent: a class whose `@step` methods exchange typed events.

    `name` is its token in subjects (a-z, 0-9, _ and -; by default the class name in lower case). `table` is its
    lifecycle (default: running, completed, failed, cancelled). `accepts` lists external events that no step
    takes but the table knows. `config` is the class of its configuration. `run_deadline_s`: how long a run may stay
    open before it ends as failed; None, the default: no limit. `uses` lists the types that its steps ask for and the
    installation provides, so that `waybook lint` knows them. Every execution gets a new object: nothing put on `self`
    survives a step. `schedules`: when runs of it begin by themselves.
    """

    name: ClassVar[str] = ""
    table: ClassVar[Table] = default_table()
    accepts: ClassVar[tuple[type[Any], ...]] = ()
    config: ClassVar[type[AgentConfig]] = AgentConfig
    run_deadline_s: ClassVar[float | None] = None
    uses: ClassVar[tuple[type[Any], ...]] = ()
    schedules: ClassVar[tuple[Schedule, ...]] = ()
