"""Why a run is not moving, in a cell of a table."""

from typing import Any

from waybook.cli.output import when


def held(message: dict[str, Any]) -> str:
    """The hold of a row of `messages`, with its reason, and until when where a timer ends it."""
    kind, reason, until = message["hold"], message.get("hold_reason"), when(message.get("hold_until"))
    if kind == "none":
        return str(kind)
    if kind == "retry":
        return f"retry at {until}" if until is not None else "retry"
    named = f"{kind} ({reason})" if reason else str(kind)
    return f"{named} until {until}" if until is not None else named
