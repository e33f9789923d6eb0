"""Metrics of the process that this is: a hook that counts, and `/metrics` while there is something to tell."""

import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from waybook.adapters.metrics.listening import address, library_is_here, listening, require_library
from waybook.adapters.nats.connection import Connection
from waybook.agents.definition import AgentDefinition
from waybook.engine.hooks import Hook, ignore
from waybook.engine.ports import ANY_LANE
from waybook.services.bootstrap.settings import Settings
from waybook.services.scheduler.scheduler import Scheduler
from waybook.services.walker.definitions import lanes
from waybook.services.walker.walker import Walker

if TYPE_CHECKING:
    from waybook.adapters.metrics.scheduler import SchedulerMetrics
    from waybook.adapters.metrics.source import Source
    from waybook.adapters.metrics.walker import WalkerMetrics

ANY_PORT = 0
NOWHERE = -1


class Observing:
    """What a walker's process and the projector beside it are observed by; everything is off without sockets.

    `hook` goes to whatever is to be counted, `projector_socket` to the projector's process.
    """

    def __init__(
        self,
        agents: Sequence[AgentDefinition] = (),
        walker_socket: socket.socket | None = None,
        projector_socket: socket.socket | None = None,
    ) -> None:
        self._walker_socket = walker_socket
        self.projector_socket = projector_socket
        self._metrics = _walker_metrics(agents) if walker_socket is not None else None
        self._scheduler = _scheduler_metrics() if walker_socket is not None else None

    @property
    def hook(self) -> Hook:
        return self._metrics or ignore

    @property
    def scheduler_hook(self) -> Hook:
        """The hook of a scheduler in this process."""
        return self._scheduler or ignore

    @property
    def addresses(self) -> dict[str, str]:
        """Where metrics are, by service."""
        sockets = {"walker": self._walker_socket, "projector": self.projector_socket}
        return {service: address(opened) for service, opened in sockets.items() if opened is not None}

    @asynccontextmanager
    async def serving(
        self, connection: Connection, walker: Walker, scheduler: Scheduler | None = None
    ) -> AsyncIterator[None]:
        """Tells of this process, a scheduler in it included, for the time of the block."""
        if self._metrics is None or self._walker_socket is None:
            yield
            return
        from waybook.adapters.metrics.backlog import Backlog
        from waybook.adapters.metrics.exposition import Exposition, Process
        from waybook.adapters.metrics.server import metrics_server
        from waybook.adapters.metrics.walker import WalkerGauges

        gauges = WalkerGauges(lambda: walker.state, lambda: connection.connected)
        more = _of_scheduler(self._scheduler, scheduler) if scheduler is not None else []
        exposition = Exposition([self._metrics, gauges, *more, Backlog(connection), Process("walker")])
        async with metrics_server(self._walker_socket, exposition):
            yield


class SchedulerObserving:
    """What a scheduler's own process is observed by; everything is off without a socket."""

    def __init__(self, opened: socket.socket | None = None) -> None:
        self._socket = opened
        self._metrics = _scheduler_metrics() if opened is not None else None

    @property
    def hook(self) -> Hook:
        return self._metrics or ignore

    @property
    def address(self) -> str | None:
        """Where metrics are."""
        return address(self._socket) if self._socket is not None else None

    @asynccontextmanager
    async def serving(self, scheduler: Scheduler) -> AsyncIterator[None]:
        """Tells of this process for the time of the block."""
        if self._socket is None:
            yield
            return
        from waybook.adapters.metrics.exposition import Exposition, Process
        from waybook.adapters.metrics.server import metrics_server

        exposition = Exposition([*_of_scheduler(self._metrics, scheduler), Process("scheduler")])
        async with metrics_server(self._socket, exposition):
            yield


UNOBSERVED = Observing()


@contextmanager
def scheduler_observed(settings: Settings) -> Iterator[SchedulerObserving]:
    """A socket where the settings say, by default a free port. Raises as `observed`."""
    port = settings.metrics_port
    if port is None:
        port = ANY_PORT if library_is_here() else NOWHERE
    if port == NOWHERE:
        yield SchedulerObserving()
        return
    require_library()
    with listening(port, settings.metrics_host) as opened:
        yield SchedulerObserving(opened)


@contextmanager
def observed(
    settings: Settings, agents: Sequence[AgentDefinition], *, otherwise: int = NOWHERE, projector: bool = True
) -> Iterator[Observing]:
    """Sockets where the settings say, for the time of the block; `otherwise` is the port where they say nothing.

    `projector`: another one, at the next port, for a projector that this process starts. Without prometheus-client
    `otherwise` counts as nowhere. Raises MetricsMissing when the settings name a port, MetricsAddressUnusable.
    """
    port = settings.metrics_port
    if port is None:
        port = otherwise if library_is_here() else NOWHERE
    if port == NOWHERE:
        yield UNOBSERVED
        return
    require_library()
    with ExitStack() as stack:
        first = stack.enter_context(listening(port, settings.metrics_host))
        second = None
        if projector:
            second = stack.enter_context(listening(port + 1 if port else ANY_PORT, settings.metrics_host))
        yield Observing(agents, first, second)


def _scheduler_metrics() -> "SchedulerMetrics":
    from waybook.adapters.metrics.scheduler import SchedulerMetrics

    return SchedulerMetrics()


def _of_scheduler(metrics: "SchedulerMetrics | None", scheduler: Scheduler) -> "list[Source]":
    from waybook.adapters.metrics.scheduler import SchedulerGauges

    counted: list[Source] = [metrics] if metrics is not None else []
    return [*counted, SchedulerGauges(lambda: scheduler.state)]


def _walker_metrics(agents: Sequence[AgentDefinition]) -> "WalkerMetrics":
    from waybook.adapters.metrics.walker import WalkerMetrics

    consumers = [spec.name for spec in (*ANY_LANE, *lanes(agents))]
    return WalkerMetrics({a.engine.agent: a.bodies for a in agents}, consumers)
