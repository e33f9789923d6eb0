"""What executions may keep beside events: the contexts of a run and of its thread."""

from collections.abc import Mapping
from typing import Any

import msgspec

from waybook.agents.errors import ReadOnlyContext
from waybook.engine.context import changed, is_same
from waybook.events.engine import ContextChange


class _Context:
    """Keys with JSON values, as they were when the execution began, and what it changes."""

    def __init__(self, values: Mapping[str, Any], *, read_only: bool = False) -> None:
        self._values = dict(values)
        self._read_only = read_only
        self._changes: list[ContextChange] = []

    @property
    def changes(self) -> tuple[ContextChange, ...]:
        """What was changed through this object, in order."""
        return tuple(self._changes)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, own changes included; `default` where there is none."""
        return self._values.get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Sets a JSON value; of two executions side by side the one that ends last wins. TypeError for no JSON value."""
        self._change("set", key, msgspec.to_builtins(value))

    def delete(self, key: str) -> None:
        """Removes a key; one that is not there is fine."""
        self._change("delete", key)

    def count(self, key: str) -> int:
        """The counter `key`, 0 at first."""
        value = self._values.get(key, 0)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def increment(self, key: str, by: int = 1) -> int:
        """Adds to the counter `key`, and returns what this execution now sees of it.

        Additions of executions side by side add up: none is lost.
        """
        self._change("add", key, by)
        return self.count(key)

    def compare_and_set(self, key: str, expected: Any, value: Any) -> bool:
        """Sets a value where there is `expected` (None: no such key), and says whether there was, as seen here.

        That is looked at again when the result is stored. In a run's context the execution runs again where another one
        was faster; in a thread's the change is then left out.
        """
        if not is_same(self._values.get(key), msgspec.to_builtins(expected)):
            return False
        self._change("set", key, msgspec.to_builtins(value), swap=True, expected=msgspec.to_builtins(expected))
        return True

    def flag(self, key: str) -> bool:
        """Whether the flag `key` is set."""
        return self._values.get(key) is True

    def set_flag(self, key: str, on: bool = True) -> None:
        """Sets or takes back a flag."""
        self._change("set", key, on)

    def _change(self, op: Any, key: str, value: Any = None, *, swap: bool = False, expected: Any = None) -> None:
        if self._read_only:
            raise ReadOnlyContext("a precondition may look at the run context and not change it")
        change = ContextChange(op, key, value, swap, expected)
        self._values = changed(self._values, (change,))
        self._changes.append(change)


class RunContext(_Context):
    """The run's own small state: counters and flags for control flow, such as rounds of a loop.

    It starts empty, and ends with the run. What an execution changes is stored in the same commit as its result: an
    attempt that fails has changed nothing. An execution sees the context as it was when it began. Data belongs into
    events, which are seen in the graph; see docs/traps.md, "context smuggle".
    """


class ThreadContext(_Context):
    """Small state of the thread that the run belongs to, kept from run to run, without expiry.

    A run without a thread has one of its own. Changes are stored with the execution's result and carried over to the
    thread, once each. Only steps may ask for it.
    """
