"""Labels: X#k is the k-th event of type X in a run's log."""

from collections import Counter
from typing import Any

import msgspec
from tests.conformance.pipeline.history import History

from waybook.events import engine as e


class Labels(msgspec.Struct):
    """Names by label, labels by name, and the log as labels in order, failures included."""

    names: dict[str, str]
    labels: dict[str, str]
    log: list[str]

    @classmethod
    def of(cls, history: History, ignored: frozenset[str] = frozenset()) -> "Labels":
        """`ignored`: steps whose failures are not events of the run."""
        counts: Counter[str] = Counter()
        found = cls({}, {}, [])
        for entry in history.entries():
            event = entry.event
            if isinstance(event, e.EventPublished):
                counts[event.event] += 1
                label = f"{event.event}#{counts[event.event]}"
                found.names[label], found.labels[entry.name] = entry.name, label
                found.log.append(label)
            elif _is_failure(event, ignored):
                counts["ExceptionEvent"] += 1
                found.log.append(f"ExceptionEvent#{counts['ExceptionEvent']}")
        return found

    def bound(self, bindings: e.Bindings) -> dict[str, Any]:
        """Bindings as labels."""
        return {
            name: None if value is None else self.labels[value] if isinstance(value, str) else
            [self.labels[v] for v in value]
            for name, value in bindings.items()
        }  # fmt: skip


def _is_failure(event: e.EngineEvent, ignored: frozenset[str]) -> bool:
    if isinstance(event, e.StepFailed):
        return event.step not in ignored
    return isinstance(event, e.PreconditionFailed) or (isinstance(event, e.RunEnded) and event.outcome == "failed")
