"""Server fixtures for every test (`waybook.testing.pytest_plugin`), and the options of the conformance cases."""

import pytest

pytest_plugins = ["waybook.testing.pytest_plugin", "tests.conformance.plugin"]

CRASHED = pytest.StashKey[bool]()
NOT_ALL_RAN = 3


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
