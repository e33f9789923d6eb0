"""What a stored commit means to whoever counts."""

from collections.abc import Callable, Mapping
from typing import Any

from waybook.engine.hooks import CommitStored, Hook, StepEnded
from waybook.engine.run import Action, Run
from waybook.events.commit import Commit
from waybook.events.engine import ActionAbandoned, ActionReleased, StepCompleted, StepFailed

_Actions = Mapping[str, Action]


def _completed(agent: str, event: StepCompleted, actions: _Actions) -> StepEnded:
    return StepEnded(agent, actions[event.action].step, "completed", event.duration_ms)


def _failed(agent: str, event: StepFailed, actions: _Actions) -> StepEnded:
    return StepEnded(agent, event.step, "exhausted" if event.exhausted else "failed", event.duration_ms)


def _abandoned(agent: str, event: ActionAbandoned, actions: _Actions) -> StepEnded:
    return StepEnded(agent, actions[event.action].step, "abandoned")


def _released(agent: str, event: ActionReleased, actions: _Actions) -> StepEnded:
    return StepEnded(agent, actions[event.action].step, "released")


_ENDS: Mapping[type, Callable[[str, Any, _Actions], StepEnded]] = {
    StepCompleted: _completed,
    StepFailed: _failed,
    ActionAbandoned: _abandoned,
    ActionReleased: _released,
}


def tell_stored(hook: Hook, commit: Commit, after: Run, size: int, took_s: float) -> None:
    """Tells the commit, and the end of every attempt in it. `after` is the run with the commit."""
    agent = after.key.agent
    hook(CommitStored(agent, len(commit.events), size, took_s))
    for event in commit.events:
        ended = _ENDS.get(type(event))
        if ended is not None:
            hook(ended(agent, event, after.actions))
