"""What `docs/reporting.md` shows is what happens."""

import ast
import asyncio
import inspect
import os
import re
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from samples.agents.reporting import Reporting
from samples.agents.reporting.table import TABLE
from tests.contract.effects.mail_server import MailServer, mail_server
from tests.integration.shell import Shell

from waybook.adapters.embedded.data_directory import DataDirectory

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "reporting.md").read_text(encoding="utf-8")
WITHIN_S = 60.0


def shown(mark: str) -> list[tuple[str, str]]:
    """Commands and what they print, of the block with that mark."""
    (block,) = re.findall(rf"<!-- {mark} -->\n```console\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    lines = block.strip().splitlines()
    return [(command.removeprefix("$ "), said) for command, said in zip(lines[::2], lines[1::2], strict=True)]


@asynccontextmanager
async def program(directory: DataDirectory, mails: MailServer) -> AsyncIterator[asyncio.subprocess.Process]:
    """The guide's program, until the block ends; it may have ended by itself."""
    ((command, _),) = shown("program")
    words = command.replace("8025", str(mails.port)).split()
    child = await asyncio.create_subprocess_exec(
        sys.executable, *words[1:], cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "WAYBOOK_DATA_DIR": str(directory.path)},
    )  # fmt: skip
    try:
        yield child
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGINT)
        await asyncio.wait_for(child.wait(), WITHIN_S)


async def until_said(child: asyncio.subprocess.Process, text: str) -> None:
    """Reads until a line begins with that."""
    assert child.stdout is not None
    async with asyncio.timeout(WITHIN_S):
        while line := (await child.stdout.readline()).decode():
            if line.startswith(text):
                return
    raise AssertionError(f"the program ended without {text!r}")


async def test_the_program_waits_survives_and_sends_what_a_person_approved(data_directory: DataDirectory) -> None:
    """As the guide tells it: stopped while it waits, started again, approved at the command line, and sent once."""
    ((_, waits),) = shown("program")
    async with mail_server(MailServer()) as mails:
        async with program(data_directory, mails) as first:
            await until_said(first, waits.partition(":")[0])
        shell = Shell(data_directory)
        async with program(data_directory, mails) as second:
            await until_said(second, waits)
            for command, said in shown("person"):
                assert said in await asyncio.to_thread(shell.run, *command.split()[1:])
            await until_said(second, "completed")
    assert [str(mail["To"]) for mail in mails.taken] == ["board@example.org"]


def test_the_steps_in_the_guide_are_those_of_the_agent() -> None:
    """With their parameters and outputs."""
    (code,) = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    written = [node for node in ast.parse(code).body if isinstance(node, ast.AsyncFunctionDef)]
    assert [node.name for node in written] == ["query", "generate", "revise", "send"]
    source = ast.parse(textwrap.dedent(inspect.getsource(Reporting))).body[0]
    assert isinstance(source, ast.ClassDef)
    steps = {node.name: node for node in source.body if isinstance(node, ast.AsyncFunctionDef)}
    for node in written:
        real = steps[node.name]
        assert ast.unparse(node.args) == ast.unparse(real.args)
        assert node.returns is not None and real.returns is not None
        assert ast.unparse(node.returns) == ast.unparse(real.returns)


def test_the_table_in_the_guide_is_that_of_the_agent() -> None:
    """Every row, in words."""
    rows = re.findall(r"^\| ([a-z_, ]+) \| (\w[\w ]*) \| (\w+)", GUIDE, flags=re.MULTILINE)
    words = {"a step fails": "StepFailed", "retry": "RetryRequested", "cancel": "CancelRequested"}
    told = {
        ("*" if state == "any" else state, words.get(event, event), following)
        for states, event, following in rows
        for state in states.split(", ")
        if following in TABLE.states
    }
    assert told == {(row.state, row.on, row.next) for row in TABLE.rows}
