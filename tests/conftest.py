"""Server fixtures for every test (`waybook.testing.pytest_plugin`), and the options of the conformance cases."""

import signal
from pathlib import Path

import pytest

pytest_plugins = ["waybook.testing.pytest_plugin", "tests.conformance.plugin"]

FOLDERS = ("samples", "integration", "crash", "contract", "conformance", "unit")
CRASHED = pytest.StashKey[bool]()
NOT_ALL_RAN = 3


def pytest_configure() -> None:
    """Lets Ctrl-C reach the programs that tests start: a shell's background jobs inherit that it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that wait for servers and processes come first, so that the last minute is not one of them alone."""
    root = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        folder = next((n for n in FOLDERS if item.path.is_relative_to(root / n)), None)
        return len(FOLDERS) if folder is None else FOLDERS.index(folder)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """Remembers that a test process died: what it had not run yet, nobody runs."""
    if error:
        node.config.stash[CRASHED] = True  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Ends with code 3 where a test process died, so that nobody takes the failed tests for all that is left to run."""
    if session.config.stash.get(CRASHED, False):
        session.exitstatus = NOT_ALL_RAN
