"""Where metrics come from."""

from collections.abc import Iterable
from typing import Protocol

from prometheus_client.metrics_core import GaugeMetricFamily, Metric


class Source(Protocol):
    """Something that is asked at every scrape."""

    async def families(self) -> Iterable[Metric]:
        """Its metrics at this moment; what cannot be told now is left out. Never raises, and takes 2 s at most."""
        ...


def gauge(name: str, text: str, value: float) -> Metric:
    """A gauge without labels."""
    return GaugeMetricFamily(name, text, value=value)
