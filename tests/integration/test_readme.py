"""What the README shows runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from waybook.cli.app import app

README = Path(__file__).parents[2] / "README.md"


def test_the_program_of_the_readme_runs_and_prints_its_answer(tmp_path: Path) -> None:
    """The README's Python blocks are one program; run one after the other they walk a run to its answer."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text("\n\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "'how many words are these' has 5 words" in done.stdout
    assert "completed" in done.stdout


def test_the_commands_of_the_readme_exist() -> None:
    """Every command that the README's table names has a help text."""
    rows = re.findall(r"^\| `waybook ([a-z-]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) >= 6
    for command in rows:
        done = CliRunner().invoke(app, [command, "--help"])
        assert done.exit_code == 0, (command, done.output)
