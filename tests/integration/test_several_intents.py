"""A mail that asks for two things, at the command line on real servers: what the guide shows, and a part drafted anew."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.shell import SAMPLES, Shell, quick_up

ROOT = Path(__file__).parents[2]
MARK = "<!-- run by tests/integration/test_several_intents.py -->"
MAIL = SAMPLES / "05-two-intents-italian.eml"


@pytest.fixture(scope="module")
def shell(postgres_template: Path) -> Iterator[Shell]:
    """A data directory in which the mail was walked."""
    with quick_up(postgres_template) as shell:
        yield shell


@pytest.fixture(scope="module")
def run(shell: Shell) -> str:
    name = str(shell.json("ingest", str(MAIL))["taken"][0]["run"])
    until(shell, name, 1)
    return name


def until(shell: Shell, run: str, approvals: int) -> None:
    """Returns when so many approvals were asked for."""
    for _ in range(100):
        if sum(row["run"] == run for row in shell.json("approvals", "--status", "all")) == approvals:
            return
    raise AssertionError(f"no {approvals} approvals of {run}")


def shown() -> list[tuple[str, list[str]]]:
    """The commands of the guide, each with the lines that its output has to hold."""
    text = (ROOT / "docs" / "inbox.md").read_text(encoding="utf-8").partition(MARK)[2]
    found: list[tuple[str, list[str]]] = []
    match = re.search(r"```console\n(.*?)```", text, re.DOTALL)
    assert match is not None
    for line in match.group(1).splitlines():
        if line.startswith("$ waybook "):
            found.append((line.removeprefix("$ waybook "), []))
        else:
            found[-1][1].append(line)
    return found


def test_what_the_guide_shows(shell: Shell, run: str) -> None:
    """Each command says what the guide says; taking the mail in is what `ingest` has done before."""
    for command, said in shown():
        words = shlex.split(command.replace("RUN", run))
        if words[0] == "run":
            words = ["messages"]
        output = shell.run(*words, COLUMNS="200")
        for line in said:
            assert line in output, (command, output)


def test_one_part_is_drafted_anew_and_the_read_models_say_so(shell: Shell, run: str) -> None:
    """Only that draft, the join and the route run again; the approval that stood is taken back."""
    assert shell.json("redraft", run, "--intent", "2", "--as", "ann")["ok"]
    until(shell, run, 2)
    rows: list[dict[str, Any]] = shell.json("actions", run)
    assert [(r["step"], r["branch"]) for r in rows if r["walk"] == 2] == [
        ("draft", "2"), ("compose", None), ("route", None),
    ]  # fmt: skip
    assert {r["status"] for r in rows} == {"completed"}
    waiting = [r for r in shell.json("approvals") if r["run"] == run]
    assert len(waiting) == 1
    assert "illegal_edge" in shell.run("redraft", run, "--intent", "3", "--json", code=1)
    shell.run("projections", "verify")
