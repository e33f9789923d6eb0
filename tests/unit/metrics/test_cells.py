"""Counters and histograms as Prometheus reads them."""

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from waybook.adapters.metrics.cells import MOST_SERIES, OTHER, Distribution, Tallies, Tally


class _Only(Collector):
    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> tuple[Metric, ...]:
        return self._families


def values(*families: Metric) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names) of everything that a reader sees."""
    text = generate_latest(_Only(*families)).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(s.name, *(s.labels[name] for name in sorted(s.labels))): s.value for s in samples}


def test_what_is_known_is_told_as_zero_and_what_is_not_once_it_happened() -> None:
    tally = Tally("seen", "Seen.", ("kind",), [("a",)])
    assert values(tally.family()) == {("seen_total", "a"): 0}
    tally.add(("a",))
    tally.add(("b",), 3)
    assert values(tally.family()) == {("seen_total", "a"): 1, ("seen_total", "b"): 3}


def test_a_counter_without_labels_begins_at_zero() -> None:
    tally = Tally("seen", "Seen.")
    assert values(tally.family()) == {("seen_total",): 0}
    tally.add()
    assert values(tally.family()) == {("seen_total",): 1}


def test_counters_that_are_counted_together_have_the_same_labels() -> None:
    tallies = Tallies({"one": "One.", "two": "Two."}, ("kind",), [("a",)])
    row = tallies.row(("b",))
    row[0] += 1
    row[1] += 5
    told = values(*tallies.families())
    assert told == {("one_total", "a"): 0, ("one_total", "b"): 1, ("two_total", "a"): 0, ("two_total", "b"): 5}


@pytest.mark.parametrize(("value", "bucket"), [(0.0, "0.5"), (0.5, "0.5"), (0.6, "2.0"), (2.0, "2.0"), (9.0, "+Inf")])
def test_a_value_falls_into_the_first_bucket_that_is_not_below_it(value: float, bucket: str) -> None:
    distribution = Distribution("took_seconds", "Took.", (0.5, 2))
    distribution.observe(value)
    told = values(distribution.family())
    found = [("took_seconds_bucket", b) for b in ("0.5", "2.0", "+Inf")]
    assert [told[name] for name in found] == [
        float(b >= found.index(("took_seconds_bucket", bucket))) for b in range(3)
    ]
    assert (told["took_seconds_count",], told["took_seconds_sum",]) == (1, value)


def test_label_values_without_end_are_counted_as_others() -> None:
    """Neither this process nor Prometheus is filled by values that somebody makes up; nothing is lost in the sum."""
    tally = Tally("seen", "Seen.", ("kind", "of"), [("known", "x")])
    distribution = Distribution("took_seconds", "Took.", (1,), ("kind",), [("known",)])
    tallies = Tallies({"one": "One."}, ("kind",), [("known",)])
    for number in range(MOST_SERIES + 50):
        tally.add((str(number), "x"))
        distribution.observe(2.0, (str(number),))
        tallies.row((str(number),))[0] += 1
    told = values(tally.family(), distribution.family(), *tallies.families())
    assert told["seen_total", OTHER, OTHER] == told["one_total", OTHER] == 50
    assert sum(v for name, v in told.items() if name[0] == "seen_total") == MOST_SERIES + 50
    assert sum(v for name, v in told.items() if name[0] == "took_seconds_count") == MOST_SERIES + 50
    for name in ("seen_total", "one_total"):
        assert len([told_name for told_name in told if told_name[0] == name]) == 1 + MOST_SERIES + 1
    assert len([name for name in told if name[0].startswith("took_seconds")]) <= MOST_SERIES + 2 * 4
