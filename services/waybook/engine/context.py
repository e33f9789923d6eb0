"""Contexts: the small key-value state of a run, or of a thread, as folded from the changes that executions made."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from waybook.events.engine import ContextChange


def changed(context: Mapping[str, Any], changes: Iterable[ContextChange]) -> dict[str, Any]:
    """The context after `changes`, in order. What is added to something that is no number replaces it."""
    new = dict(context)
    for change in changes:
        if change.op == "delete":
            new.pop(change.key, None)
        elif change.op == "set":
            if not change.swap or _holds(new, change):
                new[change.key] = change.value
        else:
            before = new.get(change.key, 0)
            new[change.key] = (before if _is_number(before) else 0) + change.value
    return new


def conflict(context: Mapping[str, Any], changes: Iterable[ContextChange]) -> str | None:
    """The first key that `changes`, in order, would swap and that is not as expected; None: they all hold."""
    for change in changes:
        if change.swap and not _holds(context, change):
            return change.key
        context = changed(context, (change,))
    return None


def _holds(context: Mapping[str, Any], change: ContextChange) -> bool:
    return is_same(context.get(change.key), change.expected)


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; true and 1 are not."""
    return msgspec.json.encode(one, order="deterministic") == msgspec.json.encode(other, order="deterministic")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
