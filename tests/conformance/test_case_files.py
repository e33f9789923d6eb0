"""Case files: formats, skipping by needs, deviations, and the summary of a whole run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import deviations
from tests.conformance.cases import ROOT, Case, collect, why_skipped
from tests.conformance.errors import CaseFileError, Mismatch
from tests.conformance.pipeline.choices import passes
from tests.conformance.scoring import Group, note

REFUSED = {
    "id": "refused",
    "group": "edges",
    "tier": "A",
    "given": {"message": {"state": "received"}},
    "actions": [{"do": "transition", "to": "drafting"}],
    "expect": {"outcomes": [{"ok": False, "reason": "illegal_edge"}], "state": "received"},
}


def _file(folder: Path, *cases: dict[str, Any], name: str = "cases.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"schema_version": 2, "cases": list(cases)}), encoding="utf-8")
    return path


def _case(**changes: Any) -> dict[str, Any]:
    return {**REFUSED, **changes}


def _run(folder: Path, *cases: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "tests/conformance/test_cases.py", "-p", "no:cacheprovider"]
    command += ["--cases", str(_file(folder, *cases))]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("{", "is not JSON", id="broken"),
        pytest.param("[]", "is not a case file", id="no object"),
        pytest.param('{"cases": []}', "is not a case file", id="no cases"),
        pytest.param('{"cases": [{"id": "x", "try": {}}]}', "unknown format", id="another format"),
        pytest.param(
            '{"format_version": 9, "cases": [{"steps": [], "publish": []}]}', "9 is not 2", id="newer dispatcher"
        ),
        pytest.param('{"schema_version": 9, "cases": [{"actions": [], "expect": {}}]}', "schema_version 9", id="newer"),
        pytest.param('{"cases": [{"actions": [], "expect": {}}]}', "not well formed", id="no id"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str, said: str) -> None:
    """A case file of an unknown format, or a broken one, is an error that names the file."""
    path = tmp_path / "cases.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CaseFileError, match=said) as error:
        collect([path])
    assert str(path) in str(error.value)


def test_several_files_may_not_share_an_id(tmp_path: Path) -> None:
    """Ids are unique over all files."""
    files = [_file(tmp_path, REFUSED, name="a.json"), _file(tmp_path, REFUSED, name="b.json")]
    with pytest.raises(CaseFileError, match="refused was used before"):
        collect(files)


def test_what_this_build_lacks_is_skipped_with_the_needs() -> None:
    """The reason of a skip names the capabilities that are missing; the later layer is one of them."""

    def case(needs: tuple[str, ...] = (), tier: str = "N") -> Case:
        return Case(id="x", group="g", tier=tier, actions=[], expect={}, needs=needs)

    provides = frozenset({"crash"})
    assert why_skipped(case(), provides) is None
    assert why_skipped(case(("crash",)), provides) is None
    assert why_skipped(case(("crash", "send", "gates")), provides) == "needs send, gates"
    assert why_skipped(case(tier="L"), provides) == "needs later"
    assert why_skipped(case(tier="L"), provides | {"later"}) is None


@pytest.mark.parametrize(
    "entry", ['x = "why"', 'x = {reason = " ", differs = ["a: b"]}', 'x = {reason = "why", differs = []}']
)
def test_a_deviation_needs_a_reason_and_what_differs(entry: str, tmp_path: Path) -> None:
    """A deviation that would excuse whatever happens is refused."""
    path = tmp_path / "deviations.toml"
    path.write_text(f"[deviations]\n{entry}\n", encoding="utf-8")
    with pytest.raises(CaseFileError, match="the deviation x needs"):
        deviations.read(path)


@pytest.mark.parametrize(
    ("error", "explained"),
    [
        (Mismatch([("hold", "is a, expected b")]), True),
        (Mismatch([("hold", "is c, expected b")]), False),
        (Mismatch([("hold", "is a, expected b"), ("state", "is x, expected y")]), False),
        (RuntimeError("hold: is a, expected b"), False),
    ],
)
def test_a_deviation_excuses_what_it_names_and_nothing_else(error: Exception, explained: bool) -> None:
    """A case that breaks in another way fails, whatever stands in the file."""
    known = deviations.Deviation("why", ("hold: is a, expected b",))
    assert known.explains(error) is explained


def test_every_way_is_walked_once() -> None:
    """Choice points are walked like an odometer, ways that open later included."""
    walked = []
    for choices in passes():
        first = choices.choose("order", 3)
        second = choices.choose("stored", 2) if first == 1 else None
        walked.append((first, second))
    assert walked == [(0, None), (1, 0), (1, 1), (2, None)]


def test_a_scored_group_holds_by_its_shares() -> None:
    """At least 90 % of the attacks are found and at most 5 % of the harmless flagged; missed ids are told."""

    def case(name: str, attack: bool) -> Case:
        return Case(id=name, group="g", tier="N", actions=[], expect={"injection_detected": attack})

    group = Group()
    for number in range(10):
        note(group, case(f"attack-{number}", True), number != 3)
    note(group, case("harmless", False), True)
    assert group.holds
    assert "missed: attack-3" in str(group)
    note(group, case("flagged", False), False)
    assert not group.holds


def test_the_summary_tells_what_was_not_run(tmp_path: Path) -> None:
    """A run passes, skips with the needs, and sums up; a case is an item with its id."""
    run = _run(tmp_path, REFUSED, _case(id="lacking", needs=["clarify"]))
    assert run.returncode == 0, run.stdout
    assert "2 cases: 1 passed, 0 failed" in run.stdout
    assert "skipped, needs clarify: 1" in run.stdout


def test_what_does_not_hold_or_is_not_understood_fails(tmp_path: Path) -> None:
    """A wrong expectation fails, and so does every word that the runner does not read: nothing is passed over."""
    wrong = [
        _case(id="wrong-state", expect={"state": "drafting"}),
        _case(id="wrong-answer", expect={"outcomes": [{"ok": True}]}),
        _case(id="wrong-count", expect={"action_rows_created": 1}),
        _case(id="verb", actions=[{"do": "fly"}]),
        _case(id="member", actions=[{"do": "drain", "wings": 2}]),
        _case(id="key", expect={"wings": 2}),
        _case(id="given", given={"wings": 2}),
        _case(id="then", expect={"then": [{"do": "drain", "expect": {"state": "archived"}}]}),
    ]
    run = _run(tmp_path, *wrong)
    assert run.returncode == 1, run.stdout
    assert f"{len(wrong)} cases: 0 passed, {len(wrong)} failed" in run.stdout
