"""Metrics of a projector's process: a hook that counts, and `/metrics` while it projects."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from waybook.adapters.metrics.listening import address, listening, require_library
from waybook.adapters.nats.connection import Connection
from waybook.engine.hooks import Hook, ProjectionState, ignore
from waybook.engine.ports import PortError, PortMisconfigured
from waybook.projections.projector import Projector, StreamProjector
from waybook.projections.stream import Lag, Stream, lag_behind

if TYPE_CHECKING:
    from waybook.adapters.metrics.projector import ProjectorMetrics

log = logging.getLogger(__name__)

TIMEOUT_S = 1.0
NOWHERE = -1


class Observed:
    """What a projector is observed by; everything is off without a socket."""

    def __init__(self, streams: tuple[str, ...] = (), listening: socket.socket | None = None) -> None:
        self._listening = listening
        self._metrics = _metrics(streams) if listening is not None else None

    @property
    def hook(self) -> Hook:
        return self._metrics or ignore

    @asynccontextmanager
    async def serving(self, connection: Connection, projector: Projector) -> AsyncIterator[None]:
        """Tells of this process for the time of the block."""
        if self._metrics is None or self._listening is None:
            yield
            return
        from waybook.adapters.metrics.exposition import Exposition, Process
        from waybook.adapters.metrics.projector import ProjectionGauges
        from waybook.adapters.metrics.server import metrics_server

        async def look() -> list[ProjectionState]:
            return [await projection_state(p, Stream(connection, name)) for name, p in projector.streams.items()]

        exposition = Exposition([self._metrics, ProjectionGauges(look), Process("projector")])
        async with metrics_server(self._listening, exposition):
            log.info("metrics", extra={"action": "metrics_served", "address": address(self._listening)})
            yield


@contextmanager
def observed(streams: tuple[str, ...], port: int, host: str, fd: int | None) -> Iterator[Observed]:
    """On the inherited socket `fd`, else at `port` (0: a free one, below 0: nowhere).

    Raises MetricsMissing, MetricsAddressUnusable.
    """
    if fd is not None or port > NOWHERE:
        require_library()
    if fd is not None:
        with socket.socket(fileno=fd) as inherited:
            yield Observed(streams, inherited)
    elif port > NOWHERE:
        with listening(port, host) as opened:
            yield Observed(streams, opened)
    else:
        yield Observed()


async def projection_state(projector: StreamProjector, stream: Stream) -> ProjectionState:
    """How a projection stands. Never raises; what cannot be told now is None."""
    health = projector.health
    healthy, active = health in ("running", "standby"), health == "running"
    if not projector.placed:
        return ProjectionState(projector.name, healthy, active)
    position = projector.mark.sequence
    lag = await _lag(stream, position)
    if lag is None:
        return ProjectionState(projector.name, healthy, active, position)
    return ProjectionState(projector.name, healthy, active, position, lag.events, lag.seconds)


async def _lag(stream: Stream, position: int) -> Lag | None:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await lag_behind(stream, position)
    except (PortError, PortMisconfigured, TimeoutError) as error:
        log.info("the lag is unknown", extra={"action": "lag_unknown", "error": str(error)})
        return None


def _metrics(streams: tuple[str, ...]) -> "ProjectorMetrics":
    from waybook.adapters.metrics.projector import ProjectorMetrics

    return ProjectorMetrics(streams)
