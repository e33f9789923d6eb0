"""Retries as a user meets them: an agent of one's own fails, its run waits, everything is killed, and it goes on."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.shell import WITHIN_S, Quick, Shell

from waybook.engine.times import iso
from waybook.testing.servers import directory_for_tests

DAY_MS = 86_400_000

AGENT = '''
"""Asks a service that is a file, and fails while it is not there."""

from pathlib import Path

from waybook.agents import Agent, RetryPolicy, StartEvent, StopEvent, step

HERE = Path(__file__).parent


class Asked(StartEvent, frozen=True):
    """What is asked."""

    text: str = "x"


class Answered(StopEvent, frozen=True):
    """The service's answer."""

    text: str


class Asking(Agent):
    """One step, one question."""

    name = "asking"

    @step(retry=RetryPolicy(max_failures=100))
    async def ask(self, asked: Asked) -> Answered:
        with (HERE / "calls").open("a") as calls:
            calls.write("call\\n")
        return Answered(text=(HERE / "service").read_text())
'''


@pytest.fixture
def shell(postgres_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A data directory, and an agent whose service is away."""
    (tmp_path / "asking.py").write_text(AGENT)
    monkeypatch.setenv("WAYBOOK_RETRY_GRID_S", "86400")
    monkeypatch.setenv("WAYBOOK_AGENTS", f"{tmp_path / 'asking.py'}:Asking")
    with asyncio.Runner() as runner:
        directory = directory_for_tests(postgres_template)
        try:
            yield Quick(runner.run(directory.__aenter__()))
        finally:
            runner.run(directory.__aexit__(None, None, None))


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + WITHIN_S
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def test_a_run_in_backoff_is_shown_survives_a_kill_of_everything_and_is_tried_again(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a grid of a day it waits; on a grid of a second it goes on by itself."""
    agent = f"{tmp_path / 'asking.py'}:Asking"
    calls = tmp_path / "calls"
    with shell.up() as up:
        _all_at_once(shell, agent, tmp_path)
        before = round(time.time() * 1000)
        shell.run("start", agent, "--run", "r1", code=1)
        why = shell.json("why", "r1", "--agent", "asking")
        due = why["hold"]["until"]
        assert (why["state"], why["hold"]["kind"], why["next_move"]) == ("failed", "retry", f"retry due {iso(due)}")
        assert due % DAY_MS == 0 and before < due <= before + DAY_MS + 60_000
        row = until(lambda: [m for m in shell.json("messages") if m["run"] == "r1"])[0]
        assert (row["hold"], row["wake_at"]) == ("retry", due)
        assert "until" in shell.run("why", "r1", "--agent", "asking")
        assert "retry at" in " ".join(shell.run("messages").split())
        up.send_signal(signal.SIGKILL)
        up.wait(WITHIN_S)
        up.returncode = 0  # as was wanted
    assert "no scheduler" in shell.json("why", "r1", "--agent", "asking")["next_move"]
    assert calls.read_text().count("call") == 1
    monkeypatch.setenv("WAYBOOK_RETRY_GRID_S", "1")
    shell = _again(shell)
    with shell.up():
        answer = shell.json("retry", "r1", "--agent", "asking")
        assert answer["ok"] is True
        until(lambda: calls.read_text().count("call") >= 3)  # the retry, and one more on the grid of a second
        (tmp_path / "service").write_text("here I am")
        until(lambda: shell.json("why", "r1", "--agent", "asking")["state"] == "completed")
        assert "refused (terminal)" in shell.run("retry", "r1", "--agent", "asking", code=1)


def _all_at_once(shell: Shell, agent: str, folder: Path) -> None:
    """After an outage: every failed run, or those of one reason, at a bounded rate."""
    runs = {f"bulk-{number}" for number in range(3)}
    for run in sorted(runs):
        shell.run("start", agent, "--run", run, code=1)
    chosen = ("retry", "--all", "--agent", "asking")
    until(lambda: {row["run"] for row in shell.json(*chosen, "--dry-run")} == runs)
    listed = shell.json(*chosen, "--error", "No such file", "--step", "ask", "--limit", "2", "--dry-run")
    assert len(listed) == 2 and all("No such file" in row["error"] for row in listed)
    assert shell.json(*chosen, "--error", "another reason") == []
    (folder / "service").write_text("here I am")
    answers = shell.json(*chosen, "--rate", "50")
    assert {row["run"] for row in answers} == runs and all(row["ok"] for row in answers)
    until(lambda: {m["status"] for m in shell.json("messages") if m["run"] in runs} == {"completed"})
    (folder / "service").unlink()
    (folder / "calls").unlink()
    assert "--all" in shell.run("retry", code=2)


def _again(shell: Shell) -> Shell:
    """The same data directory in a changed environment."""
    return Quick(shell.directory)
