"""The base class of agents."""

from typing import Any, ClassVar

from waybook.engine.definition import Table, default_table


class Agent:
    """An agent: a class whose `@step` methods exchange typed events.

    `name` is its token in subjects (a-z, 0-9, _ and -; by default the class name in lower case). `table` is its
    lifecycle (default: running, completed, failed, cancelled). `accepts` lists external events that no step
    takes but the table knows. Every execution gets a new object: nothing put on `self` survives a step.
    """

    name: ClassVar[str] = ""
    table: ClassVar[Table] = default_table()
    accepts: ClassVar[tuple[type[Any], ...]] = ()
