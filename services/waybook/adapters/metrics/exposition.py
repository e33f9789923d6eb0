"""Everything that one process tells, in the formats that Prometheus reads."""

import asyncio
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from waybook.adapters.metrics.source import Source


class _Snapshot(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


class Process:
    """The process itself: memory, CPU, open files, and which version of which service it is."""

    def __init__(self, service: str) -> None:
        self._collector = ProcessCollector(registry=None)
        self._build = GaugeMetricFamily(
            "waybook_build_info", "What runs here; always 1.", labels=("service", "version")
        )
        self._build.add_metric((service, version("waybook")), 1)

    async def families(self) -> Iterable[Metric]:
        """See Source."""
        return [self._build, *self._collector.collect()]


class Exposition:
    """The sources of one process."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    async def render(self, accept: str) -> tuple[bytes, str]:
        """The body and its content type; `accept` is the header by which the reader says what it understands."""
        families = [family for source in self._sources for family in await source.families()]
        encode, content_type = choose_encoder(accept)
        # A few milliseconds or, with many agents, many: the loop goes on meanwhile.
        return await asyncio.to_thread(encode, _Snapshot(families)), content_type
