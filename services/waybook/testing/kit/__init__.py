"""The crash kit: an agent walked in memory, killed at every boundary in turn, its deliveries disturbed.

    def test_a_report_survives_every_kill() -> None:
        kit = CrashKit([Reporting], start=Asked(topic="sales"), then=[signal(Released())])
        kit.check().expect_none()

See `docs/crash-kit.md`.
"""

from waybook.testing.kit.crash_kit import CrashKit
from waybook.testing.kit.disturbance import Disturbance
from waybook.testing.kit.other_side import OtherSide
from waybook.testing.kit.report import Report, Violation, ViolationsFound
from waybook.testing.kit.say import Say, approve, reject, signal

__all__ = [
    "CrashKit",
    "Disturbance",
    "OtherSide",
    "Report",
    "Say",
    "Violation",
    "ViolationsFound",
    "approve",
    "reject",
    "signal",
]
