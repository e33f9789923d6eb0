"""What is written to a pipe."""

import json
import os
import subprocess
import sys

import pytest

CUT = """
import os, signal
from waybook.cli.output import prepare_output, print_json
signal.signal(signal.SIGALRM, lambda *_: os.write(2, b"."))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
prepare_output()
print_json(["x" * 1000] * 500)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_a_write_that_a_signal_cuts_short_loses_nothing() -> None:
    """Half a megabyte goes whole through a full pipe, also where Python buffers nothing (PYTHONUNBUFFERED)."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", CUT], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as writer:
        assert writer.stderr is not None
        assert writer.stderr.read(3) == b"..."  # the pipe is full by now, and signals came in the write
        output, _ = writer.communicate(timeout=60)
    assert len(json.loads(output)) == 500


def run_without_a_reader(arguments: list[str], stderr: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """A command whose reader was gone before it wrote the first line."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from waybook.cli import main; main()", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        return subprocess.run(
            command, env=environment, stdout=writer, stderr=stderr, text=True, timeout=60, check=False
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("arguments", [["--help"], ["events", "schema"]])
def test_a_reader_that_left_is_no_failure(arguments: list[str]) -> None:
    """`waybook ... | head`: exit code 0 and not a word, whether the output came in one piece or in many."""
    ended = run_without_a_reader(arguments)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_failure_stays_one_though_nobody_reads_the_output() -> None:
    """Codes and words of errors do not go by who reads the output."""
    ended = run_without_a_reader(["lint", "no_such_module:Agent"])
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
