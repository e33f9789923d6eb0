"""One installation for all field cases, and the cases' own mails where their file is found."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.integration.field.desk import Desk, in_a_thread

from waybook.testing import servers


@pytest.fixture(scope="session")
def desk(postgres_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A shop with real servers, walking, for all tests of this folder."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        directory = runner.run(stack.enter_async_context(servers.directory_for_tests(postgres_template)))
        try:
            yield from in_a_thread(directory, tmp_path_factory.mktemp("mails"))
        finally:
            runner.run(stack.aclose())
