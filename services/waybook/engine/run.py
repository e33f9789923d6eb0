"""The state of a run, as folded from its history."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from waybook.events.engine import (
    ApprovalDecided,
    ApprovalRequested,
    Bindings,
    ChildRequested,
    Claim,
    ContextChange,
    Failure,
    OperationIntended,
    OperationOutcome,
    Parent,
    TimerClass,
    TokenUsage,
)
from waybook.events.subjects import RunKey

NO_PERSON = "engine"
"""Who starts a walk when no person does; the count of failures survives such walks."""

ActionStatus = Literal["running", "completed", "failed", "abandoned", "released", "waiting"]


class Published(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A typed event in a run's log. `name` is `"<version>.<index>"`, `ordinal` its place in the log from 0."""

    name: str
    ordinal: int
    event: str
    schema: int
    payload: msgspec.Raw
    action: str | None = None
    request: str | None = None
    branch: str | None = None
    walk: int = 1


class Action(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One attempt at an execution. `failures` counts those of (run, step) when it ended. Times in ms, UTC."""

    id: str
    step: str
    trigger: str
    attempt: int
    walk: int
    bindings: Bindings
    command: str
    claim: Claim
    began_at: int
    deadline: int
    status: ActionStatus = "running"
    branch: str | None = None
    ended_at: int | None = None
    duration_ms: int | None = None
    outputs: tuple[str, ...] = ()
    error: Failure | None = None
    failures: int = 0
    exhausted: bool = False
    model: str | None = None
    usage: TokenUsage | None = None
    reuse_key: str | None = None

    @property
    def execution(self) -> str:
        return execution_key(self.walk, self.step, self.trigger)

    @property
    def title(self) -> str:
        """The step as people read it, with the branch that it works on."""
        return titled(self.step, self.branch)


class Retry(msgspec.Struct, frozen=True, gc=False):
    """The next attempt of an execution, waiting for `timer`."""

    step: str
    trigger: str
    attempt: int
    due: int
    timer: str


class Offer(msgspec.Struct, frozen=True, gc=False):
    """An execution that is due and waits for a worker."""

    step: str
    trigger: str
    walk: int
    bindings: Bindings
    branch: str | None = None


class Timer(msgspec.Struct, frozen=True, gc=False):
    """A pending timer."""

    timer_class: TimerClass
    due: int
    about: str


class PathStep(msgspec.Struct, frozen=True, gc=False):
    """A transition of the current way from the initial state, as it would be repeated by a retry."""

    row: str
    from_state: str
    to_state: str
    on: str


class Approval(msgspec.Struct, frozen=True, gc=False):
    """A sealed contract and what became of it."""

    request: ApprovalRequested
    decided: ApprovalDecided | None = None
    used_by: str | None = None
    revoked: str | None = None


class Operation(msgspec.Struct, frozen=True, gc=False):
    """An external side effect: its newest intent, named `intended_as`, and its outcome.

    `disputed` holds outcomes that contradict it, until a person has decided.
    """

    intent: OperationIntended
    intended_as: str = ""
    outcome: OperationOutcome | None = None
    by: str | None = None
    evidence: dict[str, Any] = {}
    disputed: tuple[OperationOutcome, ...] = ()


class Run(msgspec.Struct, kw_only=True):
    """A folded run. Treated as a value: `fold` and `decide` copy it and never change the one they were given.

    `sequence` is that of its last commit in the stream (the guard of the next append), `commit` that commit's
    id. `visible` lists, by type, the events that steps of the current walk may bind, in log order.
    `initial` is the state that it began in. `executions` maps an execution to its newest action, `open` holds running and released actions. `path` is
    the way from the initial state, as a retry repeats it; `unhandled` names events that came while it was failed.
    `taken_over` is the person who goes on with it by hand.
    `waiting` maps an attempt that ended to wait for an operation to that operation's key; `generations` counts deliberate
    repetitions of operations by step, name and key; `waited` says how long (ms) an execution was told to wait so far. These
    are replaced, never changed, so copies share them. `retries` are next attempts by execution.
    `context` is the run context, empty once the run has ended; `thread_changes` are what it changed in its thread's,
    by the event that says so. `gate_failure`: the precondition that raised last, and how. `reason`: why it ended.
    `children` are the runs of other agents that it asked for, by request.
    """

    key: RunKey
    agent: str
    definition: str
    state: str
    started_at: int
    initial: str = ""
    configuration: dict[str, Any] = {}
    thread: str | None = None
    parent: Parent | None = None
    content: str | None = None
    flags: tuple[str, ...] = ()
    user: str | None = None
    version: int = 0
    sequence: int = 0
    commit: str = ""
    at: int = 0
    walk: int = 1
    walk_token: str | None = None
    log: list[Published] = []
    visible: dict[str, list[Published]] = {}
    actions: dict[str, Action] = {}
    executions: dict[str, str] = {}
    open: dict[str, None] = {}
    applied: dict[str, int] = {}
    fields: dict[str, Any] = {}
    failures: dict[str, int] = {}
    path: list[PathStep] = []
    unhandled: list[str] = []
    timers: dict[str, Timer] = {}
    resolved: dict[str, str] = {}
    retries: dict[str, Retry] = {}
    waited: dict[str, int] = {}
    offers: dict[str, Offer] = {}
    approvals: dict[str, Approval] = {}
    operations: dict[str, Operation] = {}
    waiting: dict[str, str] = {}
    generations: dict[str, int] = {}
    answered: dict[str, str] = {}
    convicted: dict[str, str] = {}
    context: Mapping[str, Any] = {}
    thread_changes: tuple[tuple[str, tuple[ContextChange, ...]], ...] = ()
    gate_failure: tuple[str, Failure] | None = None
    children: Mapping[str, ChildRequested] = {}
    taken_over: str | None = None
    outcome: str | None = None
    result: str | None = None
    reason: str | None = None

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    def copy(self) -> "Run":
        """A run that shares nothing mutable with this one but the lists in `visible`, which are replaced, not changed.

        So are `context`, `thread_changes` and `waited`.
        """
        # Written out: this runs once for every commit.
        new: Run = self.__copy__()  # type: ignore[attr-defined]  # copy.copy looks for it at some cost
        new.log = self.log.copy()
        new.visible = self.visible.copy()
        new.actions = self.actions.copy()
        new.executions = self.executions.copy()
        new.open = self.open.copy()
        new.applied = self.applied.copy()
        new.fields = self.fields.copy()
        new.path = self.path.copy()
        new.failures = self.failures.copy()
        new.unhandled = self.unhandled.copy()
        new.timers = self.timers.copy()
        new.resolved = self.resolved.copy()
        new.retries = self.retries.copy()
        new.offers = self.offers.copy()
        new.approvals = self.approvals.copy()
        new.operations = self.operations.copy()
        new.answered = self.answered.copy()
        new.convicted = self.convicted.copy()
        return new

    def copy_for_step(self) -> "Run":
        """A copy for the end of a step and the begin of others: it shares with this one what these never change."""
        new: Run = self.__copy__()  # type: ignore[attr-defined]
        new.log = self.log.copy()
        new.visible = self.visible.copy()
        new.actions = self.actions.copy()
        new.executions = self.executions.copy()
        new.open = self.open.copy()
        new.fields = self.fields.copy()
        new.path = self.path.copy()
        return new

    def open_actions(self) -> list[Action]:
        """Actions begun and not ended, released ones included, in the order they began."""
        return [self.actions[a] for a in self.open]

    def waiting_actions(self) -> list[Action]:
        """Attempts that ended without a result to wait for an operation."""
        return [self.actions[a] for a in self.waiting]

    def told_to_wait(self) -> list[Action]:
        """Actions that were given back to wait until a time that the other side named; their next attempt is due then."""
        if not self.retries:
            return []
        newest = (self.actions[self.executions[key]] for key in self.retries if key in self.executions)
        return [a for a in newest if a.status == "released" and a.id not in self.open]

    def unfinished(self) -> list[Action]:
        """Attempts without an end: open ones, and those that wait for an operation or as they were told to."""
        return [*self.open_actions(), *self.waiting_actions(), *self.told_to_wait()]

    def event(self, name: str) -> Published:
        """The published event of that name; KeyError when the log has none."""
        for published in reversed(self.log):
            if published.name == name:
                return published
        raise KeyError(name)


def titled(step: str, branch: str | None) -> str:
    """A step's name as people read it: `draft`, or `draft [2]` in the branch labelled 2."""
    return step if branch is None else f"{step} [{branch}]"


def is_lost(action: Action) -> bool:
    """Whether the attempt ended because its worker was lost: it then counts as a failure."""
    return action.status == "abandoned" and action.failures > 0


def execution_key(walk: int, step: str, trigger: str) -> str:
    """The identity of an execution within its run (DESIGN 1)."""
    return f"{walk}:{step}:{trigger}"
