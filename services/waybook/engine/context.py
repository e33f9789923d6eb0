"""Contexts: the small key-value state of a run, or of a thread, as folded from the changes that executions made."""

from collections.abc import Iterable, Mapping
from typing import Any

from waybook.events.engine import ContextChange


def changed(context: Mapping[str, Any], changes: Iterable[ContextChange]) -> dict[str, Any]:
    """The context after `changes`, in order. What is added to something that is no number replaces it."""
    new = dict(context)
    for change in changes:
        if change.op == "delete":
            new.pop(change.key, None)
        elif change.op == "set":
            new[change.key] = change.value
        else:
            before = new.get(change.key, 0)
            new[change.key] = (before if _is_number(before) else 0) + change.value
    return new


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
