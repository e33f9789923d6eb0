"""What Retry-After asks for, and what asks for nothing."""

import pytest

from waybook.agents.retry_after import retry_after_s

NOW_MS = 1_800_000_000_000  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("86400", 86_400.0),
        ("0", 0.0),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Friday, 15-Jan-27 08:00:30 GMT", 30.0),
        ("9" * 40, 366 * 86_400.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٧", None),
        ("Fri, 99 Jan 2027 08:00:30 GMT", None),
    ],
)
def test_seconds_and_dates_are_read_and_anything_else_asks_for_nothing(
    header: str | None, seconds: float | None
) -> None:
    assert retry_after_s(header, NOW_MS) == seconds
