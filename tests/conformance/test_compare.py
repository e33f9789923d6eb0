"""The comparing rules of the case files, one by one."""

from typing import Any

import pytest
from tests.conformance.pipeline.compare import ABSENT, differences, outcome_differences, rows_differences


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, id="an object is compared as a subset"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, id="also further down"),
        pytest.param({"a": None}, {}, id="null: absent"),
        pytest.param({"a": None}, {"a": None}, id="null: null"),
        pytest.param({"a": "set"}, {"a": 0}, id="set: anything but null"),
        pytest.param({"questions": 2}, {"questions": [1, 2]}, id="a number where there is a list is its length"),
        pytest.param({"in_seconds": 15}, {"in_seconds": 14.2}, id="from now: one second either way"),
        pytest.param({"state_in": ["x", "y"]}, {"state": "y"}, id="one of the values"),
        pytest.param({"draft_max": 3}, {"draft": 3}, id="an upper bound"),
        pytest.param({"draft_min": 3}, {"draft": 3}, id="a lower bound"),
        pytest.param([{"a": 1}, "x"], [{"a": 1, "b": 2}, "x"], id="lists entry by entry"),
        pytest.param({"output": '{"category":"billing"}'}, {"output": {"category": "billing", "x": 1}}, id="JSON text"),
        pytest.param(0.3, 0.3, id="numbers"),
    ],
)
def test_holds(expected: Any, actual: Any) -> None:
    """What is as expected has no difference."""
    assert differences(expected, actual) == []


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        pytest.param({"a": 1}, {}, id="an absent member"),
        pytest.param({"a": 1}, {"a": 2}, id="another value"),
        pytest.param({"a": None}, {"a": 0}, id="a value where null is expected"),
        pytest.param({"a": "set"}, {"a": None}, id="null where a value is expected"),
        pytest.param({"a": "set"}, {}, id="nothing where a value is expected"),
        pytest.param({"ok": True}, {"ok": 1}, id="a number is no truth value"),
        pytest.param({"questions": 2}, {"questions": [1]}, id="a list of another length"),
        pytest.param({"in_seconds": 15}, {"in_seconds": 12}, id="too early"),
        pytest.param({"in_seconds": 15}, {}, id="no time at all"),
        pytest.param({"state_in": ["x"]}, {"state": "y"}, id="none of the values"),
        pytest.param({"draft_max": 3}, {"draft": 4}, id="over the bound"),
        pytest.param([1], [1, 2], id="a longer list"),
        pytest.param([1, 2], [2, 1], id="another order"),
        pytest.param({"a": {}}, {"a": "x"}, id="no object"),
    ],
)
def test_differs(expected: Any, actual: Any) -> None:
    """What is not as expected is said."""
    assert differences(expected, actual)


def test_kept_is_the_arranged_value() -> None:
    """`kept` compares with what was arranged, and fails where nothing was."""
    assert differences({"a": "kept"}, {"a": 1}, {"a": 1}) == []
    assert differences({"a": "kept"}, {"a": 2}, {"a": 1})
    assert differences({"a": "kept"}, {"a": 2}, ABSENT)


def test_refusals_of_people_are_one_class() -> None:
    """For human verbs every refusal by the state counts as the same answer; other reasons do not, nor other verbs."""
    expected = {"ok": False, "reason": "invalid_state"}
    assert outcome_differences(expected, {"ok": False, "reason": "terminal", "human": True}) == []
    assert outcome_differences(expected, {"ok": False, "reason": "no_draft", "human": True})
    assert outcome_differences(expected, {"ok": False, "reason": "terminal"})


ROWS: list[dict[str, Any]] = [
    {"id": "a1", "kind": "draft", "status": "failed", "message": "m", "given_as": "failed"},
    {"kind": "draft", "status": "abandoned", "message": "m"},
    {"kind": "draft", "status": "pending", "message": "m", "retryCount": 1},
]


@pytest.mark.parametrize(
    ("expected", "holds"),
    [
        pytest.param([{"id": "a1", "status": "failed"}], True, id="by id"),
        pytest.param([{"id": "a2"}], False, id="an id that is not there"),
        pytest.param([{"kind": "draft", "status": "pending"}], True, id="one alone is the newest"),
        pytest.param([{"kind": "draft", "status": "failed"}], False, id="not an older one"),
        pytest.param(
            [{"kind": "draft", "status": "failed"}, {"kind": "draft", "status": "abandoned"}], True, id="oldest first"
        ),
        pytest.param([{"kind": "draft"}] * 4, False, id="more than there are"),
        pytest.param(
            [{"id": "a1", "status": "pending", "retryCount": 1}], True, id="a newer row waits for a failed one"
        ),
        pytest.param([{"id": "a1", "status": "pending", "retryCount": 2}], False, id="with the same count"),
    ],
)
def test_rows(expected: list[dict[str, Any]], holds: bool) -> None:
    """Rows are found by id, or else by kind: several oldest first, one alone the newest."""
    assert (rows_differences(expected, ROWS, "kind", "row") == []) is holds
