"""The header Retry-After (RFC 9110, section 10.2.3)."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from waybook.agents.errors import MOST_WAIT_S


def retry_after_s(header: str | None, now_ms: int) -> float | None:
    """How many seconds the other side asks to wait, counted from `now_ms` (ms UTC); 0 for a date that is past.

    None for no header and for anything that is neither a number of seconds nor an HTTP date: then nobody asked to wait.
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MOST_WAIT_S)
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0.0, moment.timestamp() - now_ms / 1000), MOST_WAIT_S)
