"""Times as people read them."""

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """A time in ms since the epoch as ISO 8601 in UTC, to the second; the number itself where no calendar has it."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(ms)


def expired(expires_at: int, now: int) -> str:
    """What is said of a command that was handled after its time, both in ms, UTC."""
    return f"the command was valid until {iso(expires_at)} and handled at {iso(now)}"
