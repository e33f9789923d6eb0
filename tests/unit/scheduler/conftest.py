"""Plants that are closed at the end."""

from collections.abc import AsyncIterator

import pytest
from tests.unit.scheduler.plant import Plant


@pytest.fixture
async def plant() -> AsyncIterator[Plant]:
    made = Plant()
    yield made
    await made.close()
