"""Options and summary of the conformance cases, for every run of pytest in this repository."""

from pathlib import Path
from typing import Any

import pytest
from tests.conformance import deviations
from tests.conformance.cases import PROVIDES, Case, collect
from tests.conformance.errors import CaseFileError
from tests.conformance.summary import Summary

CASES = pytest.StashKey[list[Case]]()
SUMMARY = pytest.StashKey[Summary]()
LINES = pytest.StashKey[list[str]]()
HANDED_OVER = "conformance"
ADAPTERS = ("memory", "nats")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cases FILE` carries out the cases of FILE instead of the default files, `--adapters` says on what."""
    group = parser.getgroup("conformance")
    group.addoption(
        "--cases", action="append", default=[], metavar="FILE", help="a case file to carry out (repeatable)"
    )
    group.addoption("--provides", action="append", default=[], metavar="NEED", help="try the cases that need this, too")
    group.addoption("--adapters", choices=ADAPTERS, default="memory", help="what the conformance cases run on")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = []
    try:
        # Files that are named are read at once, so that a wrong one ends the run with a plain message.
        config.stash[CASES] = collect([Path(f) for f in config.getoption("--cases")])
        config.stash[SUMMARY] = Summary(deviations.read(), PROVIDES | set(config.getoption("--provides")))
    except CaseFileError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process that ran a share of the tests hands its summary over."""
    node.config.stash[LINES] += getattr(node, "workeroutput", {}).get(HANDED_OVER, [])


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[HANDED_OVER] = session.config.stash[SUMMARY].lines()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = [*config.stash[LINES], *config.stash[SUMMARY].lines()]
    if lines:
        terminalreporter.section("conformance")
        for line in lines:
            terminalreporter.write_line(line)
