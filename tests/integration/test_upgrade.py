"""An upgrade over a data directory with open runs: they are carried on or named, never left stuck without a word."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.agents import step
from waybook.agents.definition import AgentDefinition, define
from waybook.inbox import events as ev
from waybook.inbox.agent import Inbox
from waybook.inbox.intake.sources import read_sources
from waybook.projections.errors import OutdatedReadModels
from waybook.projections.read_models import ReadModels
from waybook.services.bootstrap.installation import Installation, looked_at, owned, walking
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.main_job import Report, run_mails
from waybook.services.bootstrap.settings import Settings
from waybook.services.intake.starts import Starts, Submission
from waybook.services.reading.models import caught_up
from waybook.testing.history import read_history

MAIL = """From: Ada Customer <ada@customer.example>
To: Support <support@shop.example>
Subject: Question {number} about my invoice
Message-ID: <question-{number}@customer.example>
Date: Mon, 02 Mar 2026 10:00:00 +0000

Hello, could you please send me invoice number {number} again?
"""
WITHIN_S = 60.0


class Gate:
    """Bodies wait here; `entered` is set when the first comes."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.open = asyncio.Event()


class Former(Inbox):
    """The inbox of an earlier version, which had one step more."""

    name = "inbox"

    @step
    async def weigh(self, mail: ev.MailReceived, gate: Gate) -> None:
        gate.entered.set()
        await gate.open.wait()


class Recent(Inbox):
    """The inbox of a version that differs in code."""

    name = "inbox"

    async def elsewhere(self) -> None:
        """Nothing that a run can see."""


class Quiet:
    """A progress nobody looks at."""

    def taken_in(self, count: int) -> None: ...
    def settled(self, count: int, total: int) -> None: ...


@pytest.fixture
def mails(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{number}.eml" for number in range(2)]
    for number, path in enumerate(found):
        path.write_text(MAIL.format(number=number))
    return found


@asynccontextmanager
async def former_version(settings: Settings, gate: Gate) -> AsyncIterator[Installation]:
    """The data directory in the hands of the earlier version."""
    _, provides = mail_agent(settings)
    async with owned(settings, "run") as installation:
        async with walking(installation, [define(Former)], {**provides, Gate: gate}):
            yield installation


async def take_in(installation: Installation, path: Path) -> Submission:
    settings, wiring = installation.settings, installation.wiring
    starts = Starts(
        wiring.connection, wiring.commands, wiring.objects, wiring.clock, tenant=settings.tenant,
        mailbox=settings.mailbox, actor="test",
    )  # fmt: skip
    [submission] = [one async for one in starts.submit(read_sources([path])) if isinstance(one, Submission)]
    assert await starts.until_answered(WITHIN_S)
    return submission


async def walked_until_stopped(settings: Settings, path: Path) -> Submission:
    """The earlier version is stopped while the run's steps are open, so its command stays in the queue."""
    gate = Gate()
    async with former_version(settings, gate) as installation:
        submission = await take_in(installation, path)
        await asyncio.wait_for(gate.entered.wait(), WITHIN_S)
    return submission


def waybook(directory: DataDirectory, *arguments: str) -> Any:
    command = [sys.executable, "-c", "from waybook.cli import main; main()", *arguments, "--json"]
    environment = {**os.environ, "WAYBOOK_DATA_DIR": str(directory.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def run_all(settings: Settings, mails: list[Path]) -> Report:
    return await asyncio.wait_for(run_mails(settings, read_sources(mails), Quiet()), WITHIN_S)


async def test_runs_that_nobody_carries_on_are_named_and_go_on_when_their_version_is_back(
    data_directory: DataDirectory, mails: list[Path]
) -> None:
    settings = Settings(data_dir=str(data_directory.path))
    former = await walked_until_stopped(settings, mails[0])

    report = await run_all(settings, mails)
    assert [(one.run, one.definition) for one in report.unserved] == [(former.key.run, define(Former).engine.hash)]
    assert [one.run for one in report.duplicates] == [former.key.run]
    assert [m["status"] for m in report.messages] == ["draft_ready"]
    why = await asyncio.to_thread(waybook, data_directory, "why", former.key.run)
    assert (why["hold"]["kind"], why["definition"]) == ("no worker", define(Former).engine.hash)

    gate = Gate()
    gate.open.set()
    async with former_version(settings, gate) as installation:
        async with asyncio.timeout(WITHIN_S):
            while True:
                history = await read_history(installation.wiring.state, former.key)
                if any(e.to_state == "draft_ready" for c in history for e in c.events if hasattr(e, "to_state")):
                    break
                await asyncio.sleep(0.1)
    assert {commit.definition for commit in history} == {define(Former).engine.hash}


def test_versions_of_the_inbox_that_differ_in_code_carry_each_others_runs() -> None:
    current, _ = mail_agent(Settings())
    assert carry_each_other(current, define(Recent))
    assert not carry_each_other(current, define(Former))


def carry_each_other(one: AgentDefinition, other: AgentDefinition) -> bool:
    return one.engine.carries(other.engine.hash) and other.engine.carries(one.engine.hash)


async def test_a_look_brings_the_read_models_of_an_older_version_to_this_one(
    data_directory: DataDirectory, mails: list[Path]
) -> None:
    """Nothing is left to project, and the tables are older: a look must not trip over a column that they lack."""
    settings = Settings(data_dir=str(data_directory.path))
    await run_all(settings, mails)
    async with looked_at(settings, "messages") as installation:
        async with ReadModels.open(installation.database_url) as models:
            assert await models.is_current()
            await _make_older(installation.database_url)
            assert not await models.is_current()
            with pytest.raises(OutdatedReadModels):
                await models.messages()
        async with caught_up(installation) as models:
            assert [row["status"] for row in await models.messages()] == ["draft_ready"] * len(mails)


async def _make_older(database_url: str) -> None:
    """As the version left them that knew of no timers and operations."""
    connection = await asyncpg.connect(database_url)
    try:
        schema = await connection.fetchval("SELECT schema FROM waybook.generation WHERE state = 'live'")
        await connection.execute(f"SET search_path TO {schema}")
        await connection.execute("DROP TABLE timers, operations CASCADE; DELETE FROM migration WHERE number > 3")
        await connection.execute("CREATE VIEW waybook.inbound_messages AS SELECT * FROM inbound_messages")
    finally:
        await connection.close()
