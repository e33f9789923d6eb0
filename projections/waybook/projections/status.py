"""How far the read models are behind the log."""

import msgspec

from waybook.adapters.nats.connection import Connection as NatsConnection
from waybook.events.subjects import state_stream
from waybook.projections.errors import NoReadModels
from waybook.projections.generation import live_generation
from waybook.projections.read_models import FRONT, ReadModels
from waybook.projections.session import connect_reader, port_errors
from waybook.projections.stream import Stream, lag_behind


class StreamStatus(msgspec.Struct, frozen=True):
    """One stream. `lag_seconds` is the age of the oldest commit that has not been applied, 0.0 when there is none.

    `last_sequence` is None when there is no such stream. `active`: a projector holds the stream just now.
    """

    stream: str
    checkpoint: int
    last_sequence: int | None
    lag_events: int
    lag_seconds: float
    active: bool


class ReadModelStatus(msgspec.Struct, frozen=True):
    """The live generation and its streams. `outdated`: other handlers filled it, so a rebuild is due."""

    generation: int
    outdated: bool
    streams: tuple[StreamStatus, ...]

    @property
    def sound(self) -> bool:
        """Whether every stream is there and reaches the checkpoint, and the rows are of this version."""
        return not self.outdated and all(
            s.last_sequence is not None and s.last_sequence >= s.checkpoint for s in self.streams
        )


async def status(
    nats: NatsConnection, database_url: str, *, front: str = FRONT, streams: tuple[str, ...] = (state_stream(),)
) -> ReadModelStatus:
    """Asks PostgreSQL and the streams' leaders.

    Raises NoReadModels when the database has none, PortUnavailable (DatabaseUnavailable for PostgreSQL).
    """
    with port_errors():
        connection = await connect_reader(database_url)
        try:
            live = await live_generation(connection, front)
            if live is None:
                raise NoReadModels
            models = ReadModels(connection, front)
            found = [await _stream(nats, models, name) for name in streams]
            return ReadModelStatus(live.number, live.outdated, tuple(found))
        finally:
            connection.terminate()


async def _stream(nats: NatsConnection, models: ReadModels, name: str) -> StreamStatus:
    checkpoint = await models.position(name)
    lag = await lag_behind(Stream(nats, name), checkpoint)
    return StreamStatus(name, checkpoint, *lag, await models.has_reader(name))
