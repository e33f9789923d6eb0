"""Collection and fixtures of the conformance cases."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from tests.conformance.cases import collect, default_files
from tests.conformance.errors import CaseFileError
from tests.conformance.pipeline.backends import Backend, in_memory, on_nats
from tests.conformance.plugin import CASES, SUMMARY
from tests.conformance.summary import Summary

from waybook.testing.servers import NatsUnderTest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each case, by its id."""
    if "case" not in metafunc.fixturenames:
        return
    try:
        cases = metafunc.config.stash[CASES] or collect(default_files())
    except CaseFileError as error:
        raise pytest.UsageError(str(error)) from error
    if not cases:
        missing = pytest.mark.skip(reason="no case file: name one with --cases or WAYBOOK_CASES")
        metafunc.parametrize("case", [pytest.param(None, id="none", marks=missing)])
        return
    metafunc.parametrize("case", [pytest.param(case, id=case.id) for case in cases])


@pytest.fixture
def summary(pytestconfig: pytest.Config) -> Summary:
    return pytestconfig.stash[SUMMARY]


@pytest.fixture
def open_backend(request: pytest.FixtureRequest) -> Callable[[], AbstractAsyncContextManager[Backend]]:
    """Opens an empty installation on the adapters that `--adapters` names."""
    if request.config.getoption("--adapters") == "nats":
        server: NatsUnderTest = request.getfixturevalue("nats_server")
        return lambda: on_nats(server)
    return in_memory
