"""The reporting agent survives a death at every boundary, and whatever else the crash kit does to it."""

from typing import Any

import pytest
from samples.agents.reporting import Reporting
from samples.agents.reporting.events import ReportAsked, ReportRevised
from samples.agents.reporting.figures import Figures, FixedFigures

from waybook.testing.kit import CrashKit, Disturbance, OtherSide, Say, approve, reject, signal

ASKED = ReportAsked(topic="sales", recipients=("board@example.org", "ann@example.org"))
HOUR_MS = 3_600_000


def kit(*words: Say, **side: Any) -> CrashKit:
    return CrashKit(
        [Reporting],
        start=ASKED,
        then=words or [approve()],
        provides=lambda: {Figures: FixedFigures()},
        effects=lambda: {"mail": OtherSide(evidence={"message_id": "<1@example.org>"}, **side)},
    )


SIDES: dict[str, dict[str, Any]] = {
    "sound": {},
    "loses its answer": {"answers_lost": 1},
    "cannot be asked": {"can_find": False},
    "loses its answer and cannot be asked": {"answers_lost": 1, "can_find": False},
    "refuses first": {"refusals": 1},
    "refuses, then loses its answer": {"refusals": 1, "answers_lost": 1},
}


@pytest.mark.parametrize("name", SIDES)
def test_a_death_at_any_boundary_costs_nothing(name: str) -> None:
    """Whatever the mail server does, the report is approved once and leaves once, or is held for a person."""
    report = kit(**SIDES[name]).check()
    report.expect_none()
    assert len(report.boundaries) > 40
    unknown = name == "loses its answer and cannot be asked"
    assert report.state == ("email_sending" if unknown else "completed")
    assert bool(report.held) == ("cannot be asked" in name)


def test_a_rejected_report_is_not_sent() -> None:
    report = kit(reject(reason="wrong month")).check()
    report.expect_none()
    assert report.state == "failed"


def test_a_revised_report_is_approved_anew_and_only_that_one_leaves() -> None:
    """The first approval stands for the first report; what leaves is the second, once."""
    report = kit(signal(ReportRevised(remark="of March")), approve()).check()
    report.expect_none()
    assert report.state == "completed"


@pytest.mark.parametrize(
    "disturbance",
    [
        Disturbance(seed=1, twice=0.5),
        Disturbance(seed=2, late=0.4, shuffled=True),
        Disturbance(jump_ms=HOUR_MS),
        Disturbance(jump_ms=-HOUR_MS),
        Disturbance(jump_ms=HOUR_MS, dies=False),
        Disturbance(jump_ms=-HOUR_MS, dies=False),
    ],
    ids=str,
)
def test_neither_do_deliveries_that_come_twice_or_late_nor_clocks_that_jump(disturbance: Disturbance) -> None:
    kit(refusals=1).check(disturbance).expect_none()
