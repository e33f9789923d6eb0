"""What is told of an installation does not grow with what comes in."""

import time

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector
from tests.integration.field.desk import Desk
from tests.integration.field.mails import mail
from tests.integration.scraping import scrape

from waybook.adapters.metrics.walker import WalkerMetrics
from waybook.agents.definition import define
from waybook.engine.hooks import (
    CommandBuried,
    CommandRefused,
    CommandsTaken,
    CommitStored,
    ConflictMet,
    Hook,
    StepEnded,
)
from waybook.inbox.agent import Inbox

MOST_SERIES = 2000


def test_runs_and_senders_leave_no_series_behind(desk: Desk) -> None:
    """As many series after two hundred mails of two hundred senders as after a few, read in less than a second."""

    def batch(first: int, count: int) -> list[bytes]:
        return [
            mail(sender=f"Nr {n} <n{n}@d{n}.example>", subject=f"question {n}", message_id=f"<n{n}@d{n}.example>")
            for n in range(first, first + count)
        ]

    desk.walk(*batch(0, 5))
    before = _series(desk)
    desk.walk(*batch(5, 200))
    began = time.monotonic()
    after = _series(desk)
    assert time.monotonic() - began < 1
    assert before.keys() == after.keys() == {"walker", "projector"}
    assert after == before and sum(len(names) for names in after.values()) < MOST_SERIES


def _series(desk: Desk) -> dict[str, set[tuple[str, tuple[tuple[str, str], ...]]]]:
    return {
        service: {(s.name, tuple(sorted(s.labels.items()))) for s in scrape(address).samples}
        for service, address in desk.observing.addresses.items()
    }


class Everything(Collector):
    """What the walker's metrics tell, for a registry."""

    def __init__(self, families: list[object]) -> None:
        self._families = families

    def collect(self) -> list[object]:  # type: ignore[override]
        return self._families


async def test_names_without_end_are_counted_as_others() -> None:
    """Ten thousand runs with names that somebody invents: fewer than two thousand series, read in less than a second."""
    agent = define(Inbox)
    metrics = WalkerMetrics({agent.engine.agent: agent.bodies}, ["new_any"])
    _tell(metrics)
    began = time.monotonic()
    registry = CollectorRegistry()
    registry.register(Everything(list(await metrics.families())))
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    assert time.monotonic() - began < 1
    assert len(lines) < MOST_SERIES
    assert any('reason="other"' in line for line in lines) and any('step="other"' in line for line in lines)


def _tell(hook: Hook) -> None:
    for number in range(10_000):
        invented = f"name-{number % 5000}"
        hook(CommitStored("inbox", 3, 400, 0.001))
        hook(StepEnded("inbox", "classify", "completed", 12))
        hook(StepEnded("inbox", invented, "failed", 12))
        hook(CommandRefused(invented))
        hook(CommandsTaken("new_any", 1, 0))
        hook(ConflictMet(invented))
        hook(CommandBuried(invented))  # type: ignore[arg-type]
