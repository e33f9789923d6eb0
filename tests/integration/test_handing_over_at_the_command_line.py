"""`waybook start` of an agent that hands work to another one."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.integration.shell import Shell

from waybook.testing.servers import directory_for_tests

SAMPLE = Path(__file__).parents[2] / "samples" / "agents" / "sub_agent.py"


@pytest.fixture
def shell(postgres_template: Path) -> Iterator[Shell]:
    with asyncio.Runner() as runner:
        directory = directory_for_tests(postgres_template)
        try:
            yield Shell(runner.run(directory.__aenter__()))
        finally:
            runner.run(directory.__aexit__(None, None, None))


def test_the_agents_that_the_settings_name_are_carried_and_waited_for(shell: Shell) -> None:
    """The other agent's answer comes before `start` ends; without it the run says which agent is lacking."""
    start = ("start", f"{SAMPLE}:Teacher", "--data", json.dumps({"text": "21"}))
    alone = shell.run(*start, "--wait", "5")
    assert "asks   agent calculator on 2.1; it answers when a walker carries it: WAYBOOK_AGENTS" in alone
    together = shell.run(*start, WAYBOOK_AGENTS=f"{SAMPLE}:Calculator")
    assert 'stop   Solved {"text":"It is 42."}' in together


RECURRING = """
from waybook.agents import Agent, Schedule, ScheduledEvent, StopEvent, step


class Began(ScheduledEvent):
    pass


class Greeted(StopEvent):
    pass


class Greeter(Agent):
    schedules = (Schedule(name="year", cron="0 0 1 1 *", start=Began()),)

    @step
    async def greet(self, began: Began) -> Greeted:
        return Greeted()
"""


def test_the_last_times_of_a_schedule_are_shown_with_their_runs(shell: Shell, tmp_path: Path) -> None:
    """`waybook schedules --runs` says of each of the last times how its run stands, or that it has none."""
    file = tmp_path / "greeter.py"
    file.write_text(RECURRING)
    year = datetime.now(UTC).year
    shell.run("start", str(file), "--run", f"year-{year}0101t000000z")
    told = shell.json("schedules", str(file), "--runs", "--count", "2")[0]
    assert [(one["at"], one["state"]) for one in told["last"]] == [
        (f"{year}-01-01T00:00:00Z", "completed"),
        (f"{year - 1}-01-01T00:00:00Z", "no run"),
    ]
    assert len(told["next"]) == 2
