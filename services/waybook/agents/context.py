"""What a step may know of its own execution."""

from typing import Any

from waybook.engine.contract import Contract
from waybook.events.engine import ContextChange, TokenUsage
from waybook.events.subjects import RunKey


class StepContext:
    """Injected into a step that asks for it: identity of the execution, and a place to report model use.

    `execution` is stable over attempts: give it to outside systems as an idempotency key. `attempt` counts
    from 1. `flags` are intake's remarks on the run and what the lifecycle table put into the
    companion field `step_flags`, `thread` is the token of the thread that it belongs to, `branch` the label
    of the branch that the execution works on (`Event.BRANCH`), None outside of branches.
    """

    def __init__(
        self,
        *,
        key: RunKey,
        step: str,
        action: str,
        execution: str,
        attempt: int,
        flags: tuple[str, ...] = (),
        thread: str | None = None,
        branch: str | None = None,
    ) -> None:
        self.key = key
        self.step = step
        self.action = action
        self.execution = execution
        self.attempt = attempt
        self.flags = flags
        self.thread = thread
        self.branch = branch
        self.model: str | None = None
        self.usage: TokenUsage | None = None
        self.estimate: TokenUsage | None = None
        self.uncounted = 0
        self.remarks: tuple[str, ...] = ()
        self.contracts: tuple[Contract, ...] = ()
        self.own: dict[type, Any] = {}  # objects that were made for this execution, by type

    def changes(self, kind: type) -> tuple[ContextChange, ...]:
        """What the execution changed in its context of this type; nothing where it did not ask for it."""
        asked = self.own.get(kind)
        return asked.changes if asked is not None else ()

    def used_model(self, name: str, usage: TokenUsage | None = None) -> None:
        """Notes which model answered and what it counted; calls add up, the last name stands."""
        self.model = None
        self.count(name, usage)

    def count(self, name: str, usage: TokenUsage | None) -> None:
        """Adds what a call counted. The first name stands, unless `used_model` says another."""
        self.model = self.model or name
        self.usage = _sum(self.usage, usage)

    def remark(self, word: str) -> None:
        """A word about this attempt for the metrics. Of few different ones: beyond them all count as `other`."""
        self.remarks = (*self.remarks, word)

    def missed(self, estimate: TokenUsage) -> None:
        """Notes an answer whose tokens nobody told: `usage` stays what was told, a budget goes by the estimate."""
        self.uncounted += 1
        self.estimate = _sum(self.estimate, estimate)


def _sum(one: TokenUsage | None, other: TokenUsage | None) -> TokenUsage | None:
    if one is None or other is None:
        return one or other
    return TokenUsage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.total_tokens + other.total_tokens,
    )
