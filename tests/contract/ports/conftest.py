"""Fixtures of the contract tests of the ports."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.ports.adapters_under_test import Ports, installed, memory_ports, nats_ports

from waybook.adapters.nats.connection import Connection
from waybook.testing.servers import NatsUnderTest


@pytest.fixture
async def connection(clean_nats: NatsUnderTest) -> AsyncIterator[Connection]:
    """A connection to the session's nats-server with the streams of an installation."""
    async with installed(clean_nats.url) as opened:
        yield opened


@pytest.fixture(params=["memory", "nats"])
def ports(request: pytest.FixtureRequest) -> Ports:
    """Every adapter in turn."""
    return memory_ports() if request.param == "memory" else nats_ports(request.getfixturevalue("connection"))
