"""Reading a live `/metrics`, as Prometheus would."""

import re
import time
import urllib.request
from collections.abc import Callable, Iterable

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


class Scrape:
    """The samples of one answer."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples: list[Sample] = [sample for family in self.families.values() for sample in family.samples]

    @property
    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}

    def labels(self, name: str) -> set[str]:
        """Label names of a metric."""
        return {label for sample in self.samples if sample.name == name for label in sample.labels}

    def sum(self, name: str, **labels: str) -> float:
        """Over all samples with these labels; fails when there is none."""
        found = [s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()]
        assert found, (name, labels)
        return sum(found)


def scrape(address: str) -> Scrape:
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.status == 200
        return Scrape(answer.read().decode())


def until(holds: Callable[[], bool], within_s: float = 60.0) -> None:
    """Returns as soon as `holds`; fails after `within_s`. What a scrape lacks does not hold yet."""
    end = time.monotonic() + within_s
    while True:
        try:
            if holds():
                return
        except AssertionError:
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end
        time.sleep(0.1)


def addresses(said: Iterable[str]) -> list[str]:
    """The addresses of metrics in what a program printed."""
    return re.findall(r"http://\S+/metrics", " ".join(said))
