"""Rows of agent_actions, read from a run's history: one row is one attempt at a step."""

from typing import Any

import msgspec
from tests.conformance.pipeline.history import History
from tests.conformance.pipeline.names import to_case, to_product

from waybook.engine.run import execution_key
from waybook.events import engine as e
from waybook.inbox.classify import Classification

Row = dict[str, Any]


class _Reader:
    """Goes through a history once; `rows` are in order of age."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.rows: list[Row] = []
        self.by_action: dict[str, Row] = {}
        self.pending: dict[str, Row] = {}
        self.waiting: dict[str, tuple[str, str]] = {}
        self.failures: dict[str, int] = {}
        self.published: dict[str, list[Any]] = {}
        self.walk = 1
        self.sequence = 0

    def _row(self, step: str, status: str, execution: str, walk: int) -> Row:
        row = {
            "message": self.message,
            "kind": step,
            "status": status,
            "retryCount": self.failures.get(step, 0),
            "exhausted": False,
            "output": None,
            "errorMessage": None,
            "durationMs": None,
            "modelUsed": None,
            "tokenUsage": None,
            "walk": walk,
            "execution": execution,
            "sequence": self.sequence,
        }
        self.rows.append(row)
        return row

    def see(self, name: str, at: int, event: e.EngineEvent) -> None:
        handler = getattr(self, f"_{type(event).__name__}", None)
        if handler is not None:
            handler(name, at, event)

    def _EventPublished(self, name: str, at: int, event: e.EventPublished) -> None:
        if event.action is None:
            return
        outputs = self.published.setdefault(event.action, [])
        outputs.append(_as_given(to_case(msgspec.json.decode(event.payload))))
        self.by_action[event.action]["output"] = outputs[0] if len(outputs) == 1 else outputs

    def _StepBegan(self, name: str, at: int, event: e.StepBegan) -> None:
        key = execution_key(event.walk, event.step, event.trigger)
        row = self.pending.pop(key, None)
        if row is None:
            row = self._row(event.step, "running", key, event.walk)
        row.update(status="running", action=event.action, startedAt=at, branch=event.branch)
        self.by_action[event.action] = row

    def _StepCompleted(self, name: str, at: int, event: e.StepCompleted) -> None:
        self.by_action[event.action].update(status="completed", completedAt=at)
        self._measure(event)

    def _StepFailed(self, name: str, at: int, event: e.StepFailed) -> None:
        self.failures[event.step] = event.failures
        self.by_action[event.action].update(
            status="failed",
            completedAt=at,
            retryCount=event.failures,
            exhausted=event.exhausted,
            errorMessage=event.error.text,
        )
        self._measure(event)

    def _measure(self, event: e.StepCompleted | e.StepFailed) -> None:
        usage = to_case(event.usage) if event.usage is not None else None
        self.by_action[event.action].update(durationMs=event.duration_ms, modelUsed=event.model, tokenUsage=usage)

    def _ActionAbandoned(self, name: str, at: int, event: e.ActionAbandoned) -> None:
        row = self.by_action[event.action]
        row.update(status="abandoned", completedAt=at, exhausted=event.exhausted)
        if event.failures is not None:
            self.failures[row["kind"]] = row["retryCount"] = event.failures

    def _ActionReleased(self, name: str, at: int, event: e.ActionReleased) -> None:
        self.by_action[event.action].update(status="pending")

    def _StepOffered(self, name: str, at: int, event: e.StepOffered) -> None:
        key = execution_key(event.walk, event.step, event.trigger)
        self.pending[key] = self._row(event.step, "pending", key, event.walk)

    def _WalkStarted(self, name: str, at: int, event: e.WalkStarted) -> None:
        self.walk = event.n
        self.pending.clear()

    def _RetryScheduled(self, name: str, at: int, event: e.RetryScheduled) -> None:
        self.waiting[event.timer] = (event.step, execution_key(self.walk, event.step, event.trigger))

    def _TimerFired(self, name: str, at: int, event: e.TimerFired) -> None:
        if event.timer in self.waiting:
            step, key = self.waiting.pop(event.timer)
            self.pending[key] = self._row(step, "pending", key, self.walk)


def _as_given(output: Row) -> Row:
    """The event that a step returned, with what its work found beside it, as cases give it."""
    if "intents" not in output.get("classification", ()):
        return output
    found = msgspec.convert(to_product(output["classification"]), Classification)
    return {**to_case(found.main), **output}


def action_rows(history: History, message: str) -> list[Row]:
    """All rows of the run, oldest first. A retry whose timer has fired, or an offer, not yet begun is `pending`."""
    reader = _Reader(message)
    for entry in history.entries():
        reader.sequence = entry.sequence
        reader.see(entry.name, entry.at, entry.event)
    return reader.rows
