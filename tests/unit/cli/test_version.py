"""`waybook --version`."""

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from waybook.cli.app import app


@pytest.mark.parametrize("words", [["--version"], ["--version", "messages"]])
def test_says_which_version_is_installed_and_runs_nothing(words: list[str]) -> None:
    """Whoever reports a fault can name the version, also in front of a command."""
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.output) == (0, f"waybook {version('waybook')}\n")
