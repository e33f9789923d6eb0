"""What a projector counts, and how far its read models are behind."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from waybook.adapters.metrics.cells import Distribution, Tally
from waybook.engine.hooks import BatchProjected, Details, ProjectionRestarted, ProjectionState

BATCH_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BATCH = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""A batch has 1,000 commits at most."""

GAUGES: tuple[tuple[str, str, Callable[[ProjectionState], float | None]], ...] = (
    ("waybook_projector_healthy", "1: it runs or stands by, 0: it waits for a server.", lambda s: s.healthy),
    ("waybook_projector_active", "1: this process is the active reader.", lambda s: s.active),
    ("waybook_projection_position", "Sequence of the last commit in the read models.", lambda s: s.position),
    ("waybook_projection_lag_events", "Commits of the stream that are not in the read models.", lambda s: s.lag_events),
    ("waybook_projection_lag_seconds", "Age of the oldest commit not in the read models.", lambda s: s.lag_s),
)


class ProjectorMetrics:
    """The hook of a projector's process, and the source of what it counted. `streams` are those it projects."""

    def __init__(self, streams: Iterable[str]) -> None:
        known = [(stream,) for stream in streams]
        self._commits = Tally("waybook_projection_commits", "Commits projected.", ("stream",), known)
        self._sizes = Distribution(
            "waybook_projection_batch_commits", "Commits in one transaction.", BATCH, ("stream",), known
        )
        self._times = Distribution(
            "waybook_projection_batch_seconds", "How long a transaction took.", BATCH_S, ("stream",), known
        )
        self._restarts = Tally(
            "waybook_projection_restarts", "Times when reading began anew at the checkpoint.", ("stream",), known
        )
        self._handlers: dict[type, Callable[[Any], None]] = {
            BatchProjected: self._batch_projected,
            ProjectionRestarted: lambda told: self._restarts.add((told.stream,)),
        }

    def __call__(self, details: Details, /) -> None:
        """See Hook."""
        handler = self._handlers.get(type(details))
        if handler is not None:
            handler(details)

    async def families(self) -> Iterable[Metric]:
        """See Source."""
        return [counted.family() for counted in (self._commits, self._sizes, self._times, self._restarts)]

    def _batch_projected(self, told: BatchProjected) -> None:
        stream = (told.stream,)
        self._commits.add(stream, told.commits)
        self._sizes.observe(told.commits, stream)
        self._times.observe(told.took_s, stream)


class ProjectionGauges:
    """How far read models are behind; `look` is asked at every scrape, and never raises."""

    def __init__(self, look: Callable[[], Awaitable[Sequence[ProjectionState]]]) -> None:
        self._look = look

    async def families(self) -> Iterable[Metric]:
        """See Source; what is not known is left out."""
        states = await self._look()
        families: list[Metric] = []
        for name, text, value_of in GAUGES:
            family = GaugeMetricFamily(name, text, labels=("stream",))
            for state in states:
                value = value_of(state)
                if value is not None:
                    family.add_metric((state.stream,), value)
            families.append(family)
        return families
