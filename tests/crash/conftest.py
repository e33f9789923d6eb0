"""Fixtures of the crash tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from tests.crash.walks import Walk, installation, walking

from waybook.testing.servers import NatsUnderTest


@pytest_asyncio.fixture
async def walk(clean_nats: NatsUnderTest, tmp_path: Path) -> AsyncIterator[Walk]:
    """One walk on a server of its own, not started; its workers end with the test."""
    async with installation(clean_nats.url) as wiring:
        async with walking(wiring, clean_nats.url, "t", tmp_path) as walk:
            yield walk
