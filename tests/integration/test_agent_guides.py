"""What the guides for authors of agents show is run: commands with their output, code with what lint finds in it."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.agents import check
from waybook.services.bootstrap.loading import load_agent

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<kind>python|console)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)
WITHIN_S = 90


class Terminal:
    """A shell in an empty folder, in which `waybook` is this program."""

    def __init__(self, folder: Path, directory: DataDirectory) -> None:
        self.folder = folder
        commands = folder / "bin"
        commands.mkdir()
        self._put(commands / "waybook", f'exec {sys.executable} -c "from waybook.cli import main; main()" "$@"')
        self._put(commands / "python", f'exec {sys.executable} "$@"')
        self._environment = {
            **os.environ,
            "WAYBOOK_DATA_DIR": str(directory.path),
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        }
        self.background: list[subprocess.Popen[str]] = []

    @staticmethod
    def _put(path: Path, line: str) -> None:
        path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, command: str) -> str:
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=WITHIN_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def begin(self, command: str, says: str) -> None:
        """Starts a command that goes on by itself, and waits until it says something."""
        log = self.folder / "background.log"
        with log.open("w") as output:
            self.background.append(
                subprocess.Popen(
                    f"exec env {command}", shell=True, cwd=self.folder, env=self._environment, stdout=output, text=True
                )
            )
        end = time.monotonic() + WITHIN_S
        while says not in log.read_text(encoding="utf-8"):
            assert time.monotonic() < end and self.background[-1].poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.05)

    def close(self) -> None:
        for process in self.background:
            process.terminate()
            process.wait(WITHIN_S)


def commands(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that its output has to contain."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            found[-1][1].append(line.strip())
    return found


def test_the_first_agent(tmp_path: Path, data_directory: DataDirectory) -> None:
    """Line by line, with a kill in the middle and the graph at the end."""
    terminal = Terminal(tmp_path, data_directory)
    try:
        for block in BLOCK.finditer((DOCS / "first-agent.md").read_text(encoding="utf-8")):
            mark = block["mark"] or ""
            if block["kind"] == "python":
                name = mark.removeprefix("file: ")
                (tmp_path / name).write_text(block["text"], encoding="utf-8")
                continue
            for command, said in commands(block["text"]):
                if mark == "in the background":
                    terminal.begin(command, said[0])
                    continue
                output = terminal.run(command)
                for line in said:
                    assert line in output, (command, line, output)
        assert terminal.run("waybook show lamp --agent clerk --json").count('"StepBegan"') == 4
    finally:
        terminal.close()


def traps() -> list[tuple[str, str]]:
    """The pieces of code of the guide to the traps, each with the codes that it names."""
    blocks = [b["text"] for b in BLOCK.finditer((DOCS / "traps.md").read_text(encoding="utf-8"))]
    return [(text.partition("\n")[0].removeprefix("# lint:").strip(), f"{blocks[0]}\n\n{text}") for text in blocks[1:]]


@pytest.mark.parametrize(("codes", "text"), traps(), ids=[codes or "fine" for codes, _ in traps()])
def test_a_trap(codes: str, text: str, tmp_path: Path) -> None:
    """Lint finds what the guide says it finds, and nothing else."""
    file = tmp_path / f"trap_{abs(hash(text))}.py"
    file.write_text(text, encoding="utf-8")
    assert sorted(f.code for f in check(load_agent(str(file)))) == sorted(codes.split())


def test_lint_at_the_command_line(tmp_path: Path, data_directory: DataDirectory) -> None:
    """Exit code 1 and a line for each finding; JSON for programs; 2 for what is no agent."""
    terminal = Terminal(tmp_path, data_directory)
    text = next(text for codes, text in traps() if codes == "STOP_AS_INPUT")
    (tmp_path / "trap.py").write_text(text, encoding="utf-8")
    output = terminal.run("waybook lint trap.py; echo code $?")
    assert "trap.py:" in output and "error STOP_AS_INPUT: `cleanup` takes" in output and "code 1" in output
    told = json.loads(terminal.run("waybook lint trap.py --json || true"))
    assert not told["ok"] and told["findings"][0]["step"] == "cleanup" and told["findings"][0]["line"] > 0
    assert "code 2" in terminal.run("waybook lint nothing:Here; echo code $?")
