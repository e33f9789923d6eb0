"""Comparing what a case expects with what was seen (`conventions.compare`).

An object is compared as a subset, recursively; `set`, `kept` and null are words of their own; a number where the
product has a list is its length; keys that end in `_in`, `_min`, `_max` give one of several values, or bounds.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Differences = list[str]

ABSENT: Any = object()
"""Stands for a member that an object does not have."""

SAME_REFUSAL = frozenset({"illegal_edge", "terminal", "invalid_state", "not_found", "already_decided"})
"""One class of answers for human verbs: not possible in this state."""


def differences(expected: Any, actual: Any, kept: Any = ABSENT, where: str = "") -> Differences:
    """What is wrong with `actual`, in words; empty when it is as expected. `kept` is the arranged value."""
    if expected is None:
        return [] if actual is None or actual is ABSENT else [f"{where} is {show(actual)}, not absent or null"]
    if actual is ABSENT:
        return [f"{where} is absent, expected {show(expected)}"]
    if expected == "set":
        return [] if actual is not None else [f"{where} is null, expected a value"]
    if expected == "kept" and kept is not ABSENT:
        return _same(kept, actual, where)
    if isinstance(expected, Mapping):
        return _object(expected, actual, kept, where)
    if isinstance(expected, list):
        return _list(expected, actual, kept, where)
    if _is_number(expected) and isinstance(actual, (list, tuple)):
        return [] if len(actual) == expected else [f"{where} has {len(actual)} entries, expected {expected}"]
    if isinstance(expected, str) and isinstance(actual, Mapping):
        return _text_of_object(expected, actual, where)
    return _same(expected, actual, where)


def _same(expected: Any, actual: Any, where: str) -> Differences:
    equal = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    return [] if equal else [f"{where} is {show(actual)}, expected {show(expected)}"]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _object(expected: Mapping[str, Any], actual: Any, kept: Any, where: str) -> Differences:
    if not isinstance(actual, Mapping):
        return [f"{where} is {show(actual)}, expected an object with {', '.join(expected)}"]
    found: Differences = []
    for key, value in expected.items():
        below = f"{where}.{key}" if where else key
        kept_below = kept.get(key, ABSENT) if isinstance(kept, Mapping) else ABSENT
        found += _member(key, value, actual, kept_below, below)
    return found


def _member(key: str, value: Any, actual: Mapping[str, Any], kept: Any, where: str) -> Differences:
    if key not in actual:
        for suffix, test in (("_in", _one_of), ("_min", _at_least), ("_max", _at_most)):
            base = key.removesuffix(suffix)
            if base != key and base in actual:
                return test(value, actual[base], where)
    if key == "in_seconds":
        return _in_seconds(value, actual.get(key, ABSENT), where)
    return differences(value, actual.get(key, ABSENT), kept, where)


def _one_of(values: Sequence[Any], actual: Any, where: str) -> Differences:
    if any(not differences(value, actual) for value in values):
        return []
    return [f"{where}: {show(actual)} is none of {show(values)}"]


def _at_least(bound: Any, actual: Any, where: str) -> Differences:
    return [] if _size(actual) >= bound else [f"{where}: {show(actual)} is under {bound}"]


def _at_most(bound: Any, actual: Any, where: str) -> Differences:
    return [] if _size(actual) <= bound else [f"{where}: {show(actual)} is over {bound}"]


def _size(value: Any) -> Any:
    return len(value) if isinstance(value, (list, tuple)) else value


def _in_seconds(expected: Any, actual: Any, where: str) -> Differences:
    """From now, one second either way."""
    if not _is_number(expected):
        return differences(expected, actual, where=where)
    if not _is_number(actual) or abs(actual - expected) > 1:
        return [f"{where} is {show(actual)}, expected {expected} (one second either way)"]
    return []


def _list(expected: Sequence[Any], actual: Any, kept: Any, where: str) -> Differences:
    if not isinstance(actual, (list, tuple)):
        return [f"{where} is {show(actual)}, expected a list of {len(expected)}"]
    if len(actual) != len(expected):
        return [f"{where} has {len(actual)} entries {show(actual)}, expected {len(expected)}: {show(expected)}"]
    found: Differences = []
    for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
        kept_below = kept[index] if isinstance(kept, (list, tuple)) and index < len(kept) else ABSENT
        found += differences(one, other, kept_below, f"{where}[{index}]")
    return found


def _text_of_object(expected: str, actual: Mapping[str, Any], where: str) -> Differences:
    """A case writes an output as JSON text; the product keeps the object."""
    try:
        parsed = json.loads(expected)
    except ValueError:
        return [f"{where} is {show(actual)}, expected the text {show(expected)}"]
    return differences(parsed, actual, where=where)


def outcome_differences(expected: Mapping[str, Any], actual: Mapping[str, Any], where: str = "") -> Differences:
    """Answers of verbs: for human verbs all refusals of one class count as the same."""
    wanted, given = expected.get("reason"), actual.get("reason")
    if actual.get("human") and wanted in SAME_REFUSAL and given in SAME_REFUSAL:
        expected = {**expected, "reason": given}
    return differences(expected, actual, where=where)


def rows_differences(
    expected: Sequence[Mapping[str, Any]], actual: Sequence[Mapping[str, Any]], kind: str, where: str
) -> Differences:
    """Every expected row is found, by id or else by `kind` (the name of that member).

    Several of one kind are matched oldest first, one alone is the newest. `actual` is in order of age.
    """
    found: Differences = []
    by_kind: dict[Any, list[Mapping[str, Any]]] = {}
    for row in expected:
        if "id" not in row:
            by_kind.setdefault(row.get(kind), []).append(row)
        else:
            found += _row_by_id(row, actual, kind, f"{where}[{row['id']}]")
    for name, rows in by_kind.items():
        candidates = [r for r in actual if name is None or r.get(kind) == name]
        if len(candidates) < len(rows):
            found.append(f"{where}: {len(rows)} of {name} expected, there are {len(candidates)}")
        elif len(rows) == 1:
            found += differences(_plain(rows[0]), candidates[-1], where=f"{where}[{name}]")
        else:
            found += _oldest_first(rows, candidates, f"{where}[{name}]")
    return found


def _row_by_id(row: Mapping[str, Any], actual: Sequence[Mapping[str, Any]], kind: str, where: str) -> Differences:
    own = [r for r in actual if r.get("id") == row["id"]]
    if not own:
        return [f"{where} is not there"]
    problem = differences(_plain(row), own[-1], where=where)
    if problem and row.get("status") == "pending" and own[-1].get("given_as") in ("failed", "pending"):
        return [] if _newer_attempt_waits(row, own[-1], actual, kind) else problem
    return problem


def _newer_attempt_waits(
    row: Mapping[str, Any], own: Mapping[str, Any], actual: Sequence[Mapping[str, Any]], kind: str
) -> bool:
    """`pending` on a row given as failed or pending: a newer row of that step of the run is pending or running."""
    later = actual[list(actual).index(own) + 1 :]
    rest = {k: v for k, v in _plain(row).items() if k != "status"}
    return any(
        other.get(kind) == own.get(kind)
        and other.get("message") == own.get("message")
        and other.get("status") in ("pending", "running")
        and not differences(rest, other)
        for other in later
    )


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k != "id"}


def _oldest_first(
    rows: Sequence[Mapping[str, Any]], candidates: Sequence[Mapping[str, Any]], where: str
) -> Differences:
    found: Differences = []
    for index, (row, candidate) in enumerate(zip(rows, candidates, strict=False)):
        found += differences(_plain(row), candidate, where=f"{where} no. {index + 1}")
    return found


def show(value: Any) -> str:
    """A value for people, shortened."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else text[:297] + "..."
