"""How lists say why a run is not moving."""

from typing import Any

import pytest

from waybook.cli.held import held


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"hold": "none", "hold_reason": None, "hold_until": None}, "none"),
        ({"hold": "retry", "hold_reason": "retry", "hold_until": 1_800_000_300_000}, "retry at 2027-01-15T08:05:00Z"),
        (
            {"hold": "waiting", "hold_reason": "rate_limit", "hold_until": 1_800_000_007_000},
            "waiting (rate_limit) until 2027-01-15T08:00:07Z",
        ),
        ({"hold": "waiting", "hold_reason": "approval", "hold_until": None}, "waiting (approval)"),
        ({"hold": "reconciling", "hold_reason": None, "hold_until": None}, "reconciling"),
    ],
)
def test_a_hold_is_shown_with_its_reason_and_its_end(row: dict[str, Any], shown: str) -> None:
    assert held(row) == shown
