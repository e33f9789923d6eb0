"""The command line as a user runs it: a process of its own for every command."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.cli import main
from waybook.testing.servers import directory_for_tests

MAIN = "from waybook.cli import main; main()"
WITHIN_S = 120
SAMPLES = Path(__file__).parents[2] / "samples" / "mail"


class Shell:
    """Runs `waybook` on one data directory."""

    def __init__(self, directory: DataDirectory) -> None:
        self.directory = directory
        self._environment = {**os.environ, "WAYBOOK_DATA_DIR": str(directory.path)}

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """A command that goes on by itself."""
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments],
            env={**self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """The output of a command that ends with `code`."""
        process = self.start(*arguments, **environment)
        output, errors = process.communicate(timeout=WITHIN_S)
        assert process.returncode == code, (arguments, output, errors)
        return output if code == 0 else output + errors

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    @contextmanager
    def up(self, *options: str) -> Iterator["subprocess.Popen[str]"]:
        """`waybook up` at work for the time of the block."""
        up = self.start("up", *options)
        try:
            assert up.stdout is not None
            while "walking" not in (line := up.stdout.readline()):
                assert line, up.communicate()
            yield up
        finally:
            up.send_signal(signal.SIGINT)
            output, errors = up.communicate(timeout=WITHIN_S)
        assert up.returncode == 0, (output, errors)


class Quick(Shell):
    """The same, within this process: a command costs no start of Python. `start` still makes a process."""

    def run(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """As Shell.run; what the command prints is the same, its process is ours."""
        output, errors = io.StringIO(), io.StringIO()
        kept = (dict(os.environ), sys.argv)
        os.environ.update({**self._environment, **environment})
        sys.argv = ["waybook", *arguments]
        ended = 0
        try:
            with redirect_stdout(output), redirect_stderr(errors):
                main()
        except SystemExit as end:
            ended = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            os.environ.clear()
            os.environ.update(kept[0])
            sys.argv = kept[1]
        assert ended == code, (arguments, output.getvalue(), errors.getvalue())
        return output.getvalue() if code == 0 else output.getvalue() + errors.getvalue()


@contextmanager
def quick_up(postgres_template: Path) -> Iterator[Quick]:
    """A data directory of its own in which `up` is at work, for the time of the block."""
    with asyncio.Runner() as runner:
        directories = directory_for_tests(postgres_template)
        shell = Quick(runner.run(directories.__aenter__()))
        try:
            with shell.up():
                yield shell
        finally:
            runner.run(directories.__aexit__(None, None, None))
