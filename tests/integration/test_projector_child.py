"""The projector as a child process: it ends when it is told to."""

import asyncio
import os

from waybook.projections.read_models import ReadModels
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import wired
from waybook.services.projector.child import projector_child
from waybook.testing.servers import NatsUnderTest


async def test_a_child_that_is_told_to_stop_ends_by_itself(clean_nats: NatsUnderTest, database_url: str) -> None:
    """SIGTERM ends a working child with code 0, long before anybody has to kill it."""
    await ensure_topology(clean_nats.url)
    async with wired(clean_nats.url, name="test") as wiring:
        async with projector_child(clean_nats.url, database_url) as child:
            async with ReadModels.open(database_url) as models:
                async with asyncio.timeout(30):
                    while not await models.has_reader(wiring.state.stream):  # noqa: ASYNC110 - it tells nobody
                        await asyncio.sleep(0.05)
    assert child.exit_code == 0


async def test_it_lets_the_walker_go_first(clean_nats: NatsUnderTest, database_url: str) -> None:
    """Where cores are short, commits are waited for, and read models are not."""
    async with projector_child(clean_nats.url, database_url) as child:
        assert child.pid is not None
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == os.getpriority(os.PRIO_PROCESS, 0) + 10
