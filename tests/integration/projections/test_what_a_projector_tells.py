"""How far the read models are behind, as a projector tells it, and when it tells nothing."""

import asyncio

from tests.integration.projections.installation import STREAM, installed, until

from waybook.engine.hooks import BatchProjected, Details, ProjectionRestarted, ProjectionState
from waybook.events.commit import Position
from waybook.projections.observing import projection_state
from waybook.projections.projector import Projector
from waybook.projections.stream import Stream
from waybook.testing.servers import NatsUnderTest, ServerUnderTest


async def test_a_projector_tells_its_batches_and_its_lag(own_nats: NatsUnderTest, database_url: str) -> None:
    """The lag is 0 when all is applied, grows when it stops, and is unknown while the log does not answer."""
    told: list[Details] = []
    async with installed(own_nats.url, database_url) as installation:
        stream = Stream(installation.connection, STREAM)
        projector = Projector(installation.connection, database_url, installation.settings, hook=told.append)
        mine = projector.streams[STREAM]
        assert await projection_state(mine, stream) == ProjectionState(STREAM, False, False)
        task = asyncio.create_task(projector.run())
        last = await installation.append_walks(5)
        await projector.wait_until(Position(STREAM, last), 30)
        assert await projection_state(mine, stream) == ProjectionState(STREAM, True, True, last, 0, 0.0)
        batches = [details for details in told if isinstance(details, BatchProjected)]
        assert sum(batch.commits for batch in batches) == last and all(batch.took_s > 0 for batch in batches)
        projector.stop()
        await task
        behind = await installation.append_walks(1, first=5)
        state = await projection_state(mine, stream)
        assert (state.healthy, state.position, state.lag_events) == (False, last, behind - last)
        assert state.lag_s is not None and 0 <= state.lag_s < 30
        await own_nats.kill()
        assert await projection_state(mine, stream) == ProjectionState(STREAM, False, False, last)


async def test_a_reader_on_standby_tells_no_lag(clean_nats: NatsUnderTest, database_url: str) -> None:
    """It does not know where the active one is."""
    async with installed(clean_nats.url, database_url) as installation, installation.projecting() as first:
        await first.wait_until(Position(STREAM, await installation.append_walks(1)), 30)
        async with installation.projecting() as second:

            async def stands_by() -> bool:
                return second.health == "standby"

            await until(stands_by)
            state = await projection_state(second.streams[STREAM], Stream(installation.connection, STREAM))
            assert state == ProjectionState(STREAM, True, False)


async def test_a_loss_of_postgres_is_told(clean_nats: NatsUnderTest, own_postgres: ServerUnderTest) -> None:
    told: list[Details] = []
    async with installed(clean_nats.url, own_postgres.url) as installation:
        projector = Projector(installation.connection, own_postgres.url, installation.settings, hook=told.append)
        task = asyncio.create_task(projector.run())
        last = await installation.append_walks(1)
        await projector.wait_until(Position(STREAM, last), 30)
        await own_postgres.kill()
        await installation.append_walks(1, first=1)

        async def noticed() -> bool:
            return ProjectionRestarted(STREAM) in told

        await until(noticed)
        state = await projection_state(projector.streams[STREAM], Stream(installation.connection, STREAM))
        assert (state.healthy, state.active, state.lag_events) == (False, False, 6)
        projector.stop()
        await task
