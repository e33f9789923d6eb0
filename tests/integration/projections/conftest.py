"""The servers of the projections' tests."""

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.integration.projections.installation import Installation, installed

from waybook.testing.servers import NatsUnderTest


@pytest_asyncio.fixture
async def installation(clean_nats: NatsUnderTest, database_url: str) -> AsyncIterator[Installation]:
    """An empty stream on the session's nats-server, and a database of the test's own."""
    async with installed(clean_nats.url, database_url) as found:
        yield found
