"""Times as people read them."""

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """A time in ms since the epoch as ISO 8601 in UTC, to the second; the number itself where no calendar has it."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(ms)
