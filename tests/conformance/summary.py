"""What came of the cases, for the summary at the end."""

from collections import defaultdict

from tests.conformance.cases import Case, why_skipped
from tests.conformance.deviations import Deviation
from tests.conformance.scoring import Group, note


class Summary:
    """Collects outcomes; `lines` is the summary."""

    def __init__(self, deviations: dict[str, Deviation], provides: frozenset[str]) -> None:
        self._provides = provides
        self.deviations = deviations
        self.groups: dict[str, Group] = {}
        self._passed: list[str] = []
        self._failed: list[str] = []
        self._skipped: dict[str, list[str]] = defaultdict(list)
        self._deviating: dict[str, str] = {}

    def why_skipped(self, case: Case) -> str | None:
        return why_skipped(case, self._provides)

    def passed(self, case: Case) -> None:
        self._passed.append(case.id)

    def failed(self, case: Case) -> None:
        self._failed.append(case.id)

    def skipped(self, case: Case, reason: str) -> None:
        self._skipped[reason].append(case.id)

    def deviates(self, case: Case, reason: str) -> None:
        self._deviating[case.id] = reason

    def scored(self, case: Case, *, holds: bool) -> None:
        note(self.groups.setdefault(case.group, Group()), case, holds)

    def lines(self) -> list[str]:
        """The summary: counts, what is skipped by needs, deviations, scored groups with what they missed."""
        skipped = sum(len(ids) for ids in self._skipped.values())
        counts = {
            "passed": len(self._passed),
            "failed": len(self._failed),
            "missed (scored)": sum(len(g.missed) + len(g.flagged) for g in self.groups.values()),
            "deviate": len(self._deviating),
            "skipped": skipped,
        }
        if not sum(counts.values()):
            return []
        lines = [f"{sum(counts.values())} cases: " + ", ".join(f"{n} {word}" for word, n in counts.items())]
        lines += [f"failed: {case}" for case in self._failed]
        lines += [f"deviates: {case}: {reason}" for case, reason in self._deviating.items()]
        for reason, ids in sorted(self._skipped.items(), key=lambda pair: (-len(pair[1]), pair[0])):
            lines.append(f"skipped, {reason}: {len(ids)}")
        lines += [f"scored, {name}: {group}" for name, group in self.groups.items()]
        return lines
