"""Counters and histograms as plain numbers, made into Prometheus' families when somebody asks.

prometheus-client's own counters take a lock and several calls each: 1 to 5 microseconds an occurrence, ten times what
a number in a dict takes. Everything here is used on one event loop only.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric

MOST_SERIES = 150
"""Series of one metric under label values that were not known from the start."""

OTHER = "other"
"""Label value of all that came after them."""

Labels = tuple[str, ...]


class Tally:
    """A counter; `name` without `_total`. `known` label values are told from the start, as zeros."""

    def __init__(self, name: str, text: str, labels: Labels = (), known: Iterable[Labels] = ((),)) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._counts: dict[Labels, float] = dict.fromkeys(_fitting(known, labels), 0)
        self._most = len(self._counts) + MOST_SERIES

    def add(self, values: Labels = (), count: float = 1) -> None:
        """Counts `count` more for these label values."""
        counts = self._counts
        if values in counts:
            counts[values] += count
        else:
            values = _admitted(values, len(counts) < self._most)
            counts[values] = counts.get(values, 0) + count

    def family(self) -> Metric:
        """The counter as it stands."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for values, count in self._counts.items():
            family.add_metric(values, count)
        return family


class Tallies:
    """Counters that are counted together under the same label values: name (without `_total`) and text of each."""

    def __init__(self, counters: Mapping[str, str], labels: Labels, known: Iterable[Labels] = ()) -> None:
        self._counters = counters
        self._labels = labels
        self._rows: dict[Labels, list[float]] = {values: self._zeros() for values in known}
        self._most = len(self._rows) + MOST_SERIES // len(counters)

    def row(self, values: Labels) -> list[float]:
        """The numbers under these label values, one a counter, to be added to."""
        return self._rows.get(values) or self._rows.setdefault(
            _admitted(values, len(self._rows) < self._most), self._zeros()
        )

    def _zeros(self) -> list[float]:
        return [0.0] * len(self._counters)

    def families(self) -> Iterator[Metric]:
        """The counters as they stand."""
        for index, (name, text) in enumerate(self._counters.items()):
            family = CounterMetricFamily(name, text, labels=self._labels)
            for values, row in self._rows.items():
                family.add_metric(values, row[index])
            yield family


class _Cell:
    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Distribution:
    """A histogram over `bounds`, the largest values of its buckets in growing order; `known` as in Tally."""

    def __init__(
        self, name: str, text: str, bounds: Sequence[float], labels: Labels = (), known: Iterable[Labels] = ((),)
    ) -> None:
        self._name = name
        self._text = text
        self._bounds = tuple(bounds)
        self._labels = labels
        self._cells = {values: _Cell(len(self._bounds) + 1) for values in _fitting(known, labels)}
        self._most = len(self._cells) + MOST_SERIES // (len(self._bounds) + 3)

    def observe(self, value: float, values: Labels = ()) -> None:
        """Counts one `value` under these label values."""
        cell = self._cells.get(values) or self._cell(values)
        cell.counts[bisect_left(self._bounds, value)] += 1
        cell.total += value

    def _cell(self, values: Labels) -> _Cell:
        return self._cells.setdefault(_admitted(values, len(self._cells) < self._most), _Cell(len(self._bounds) + 1))

    def family(self) -> Metric:
        """The histogram as it stands."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for values, cell in self._cells.items():
            buckets, below = [], 0
            for name, count in zip(names, cell.counts, strict=True):
                below += count
                buckets.append((name, below))
            family.add_metric(values, buckets, cell.total)
        return family


def _fitting(known: Iterable[Labels], labels: Labels) -> list[Labels]:
    """What is known from the start; nothing where a metric has labels and nobody said which values."""
    return [values for values in known if len(values) == len(labels)]


def _admitted(values: Labels, room: bool) -> Labels:
    """A label that takes values without end would fill the memory here and in Prometheus."""
    return values if room else (OTHER,) * len(values)
