"""The events that the engine writes, one frozen struct each.

A name is a past-tense fact. Times are milliseconds since the epoch, UTC; durations end in `_ms`. An event, a
trigger and a timer are named `"<version>.<index>"` within their run (`waybook.events.commit.event_name`).
"""

from typing import Any, Literal, get_args

import msgspec

from waybook.events.aggregate import (
    ArrivalAdmitted,
    GrantChanged,
    KillSwitchSet,
    OutcomeCounted,
    PolicyChanged,
    ReplyJudged,
    ReservationSettled,
    Reserved,
    SenderBlockSet,
    SenderTrustSet,
    Spent,
    ThreadContextChanged,
    ThreadJoined,
    ThreadStatusSet,
    ThresholdMoved,
)
from waybook.events.approval import ApprovalDecided, ApprovalRequested, ApprovalRevoked, ApprovalUsed
from waybook.events.fact import ContextChange, Fact

__all__ = [
    "ApprovalDecided",
    "ApprovalRequested",
    "ApprovalRevoked",
    "ApprovalUsed",
    "ArrivalAdmitted",
    "ContextChange",
    "GrantChanged",
    "KillSwitchSet",
    "OutcomeCounted",
    "PolicyChanged",
    "ReplyJudged",
    "ReservationSettled",
    "Reserved",
    "SenderBlockSet",
    "SenderTrustSet",
    "Spent",
    "ThreadContextChanged",
    "ThreadJoined",
    "ThreadStatusSet",
    "ThresholdMoved",
]
"""What stands in files of its own and belongs to the engine's events all the same."""

Bindings = dict[str, str | tuple[str, ...] | None]
"""Names of the events that fill each parameter of a step: one, several, or none."""


class Claim(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Which delivery of a command holds an action; a later delivery of one command is always larger.

    `sequence` is that of the command in COMMANDS, `consumer_created` the creation time of the consumer in
    nanoseconds (the delivery count restarts with a new consumer), `delivery` counts from 1.
    """

    sequence: int
    consumer_created: int
    delivery: int


class TokenUsage(msgspec.Struct, frozen=True, gc=False):
    """What a model counted for one call or one action."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why an attempt failed. `type` is the exception's class name, `text` is for people."""

    type: str
    text: str
    retryable: bool = True


class Parent(msgspec.Struct, frozen=True, gc=False):
    """The run and request that asked for a child run."""

    agent: str
    run: str
    request: str


class RunStarted(Fact, frozen=True, kw_only=True):
    """First event of a run. `content` is the digest of what started it, `flags` are remarks of intake.

    `user` is who asked for it, None for a run that a program or a timetable began.
    """

    agent: str
    definition: str
    state: str
    configuration: dict[str, Any] = {}
    thread: str | None = None
    parent: Parent | None = None
    content: str | None = None
    flags: tuple[str, ...] = ()
    user: str | None = None


class EventPublished(Fact, frozen=True, kw_only=True):
    """A typed event of the agent: a step's result (`action`) or accepted from outside.

    `event` is the type's name, `payload` the event's own JSON, `schema` the version of its shape. `ancestors` are
    the names of the types that it derives from, nearest first, `Event` left out: a reader that does not know the
    type takes the nearest that it knows. `request` names the request that it answers.
    """

    event: str
    schema: int
    payload: msgspec.Raw
    ancestors: tuple[str, ...] = ()
    action: str | None = None
    request: str | None = None
    branch: str | None = None


class ContextChanged(Fact, frozen=True, kw_only=True):
    """What an execution changed in its run's context, or in that of the run's thread, in order.

    It stands in the commit of the execution's result. A thread's changes are carried over to the thread, once.
    """

    action: str
    changes: tuple[ContextChange, ...]
    scope: Literal["run", "thread"] = "run"


class Transitioned(Fact, frozen=True, kw_only=True, rename={"from_state": "from", "to_state": "to"}):
    """The lifecycle moved along row `row`, because of `on`; `fields` changed with it."""

    row: str
    from_state: str
    to_state: str
    on: str
    fields: dict[str, Any] = {}
    reason: str | None = None


class FieldsSet(Fact, frozen=True, kw_only=True):
    """A row without a next state applied: only the run's fields changed."""

    row: str
    fields: dict[str, Any]


class StepBegan(Fact, frozen=True, kw_only=True):
    """An attempt at an execution begins; who commits it runs it (claims, rule 1).

    An execution is (run, walk, step, trigger). `action` names this attempt. `deadline` is the time by which
    the worker ends it as failed.
    """

    action: str
    step: str
    trigger: str
    attempt: int
    walk: int
    bindings: Bindings
    command: str
    claim: Claim
    deadline: int
    branch: str | None = None


class StepCompleted(Fact, frozen=True, kw_only=True):
    """An attempt ended with a result; `outputs` are indexes of EventPublished in the same commit."""

    action: str
    outputs: tuple[int, ...]
    duration_ms: int
    model: str | None = None
    usage: TokenUsage | None = None
    reuse_key: str | None = None


class StepFailed(Fact, frozen=True, kw_only=True):
    """An attempt ended with an error. `failures` counts those of (run, step); `exhausted`: no automatic retry."""

    action: str
    step: str
    error: Failure
    failures: int
    exhausted: bool
    duration_ms: int
    model: str | None = None
    usage: TokenUsage | None = None


class ActionAbandoned(Fact, frozen=True, kw_only=True):
    """An attempt that began and will never end: its worker was lost, or the run closed or was taken over.

    `failures` and `exhausted` stand for `lost` only: a lost worker counts as a failure of the step. `because`: why an
    attempt was closed although the run goes on, and its next attempt begun in the same commit.
    """

    action: str
    reason: Literal["lost", "closed", "taken_over"]
    failures: int | None = None
    exhausted: bool = False
    because: str | None = None


class ActionReleased(Fact, frozen=True, kw_only=True):
    """An attempt given back without a failure: a graceful stop, or a wait for a rate limit until `until`.

    `about`: it waits for that operation's outcome. Its command is done then, and another one begins the next attempt.
    """

    action: str
    reason: Literal["stop", "wait"]
    until: int | None = None
    about: str | None = None


class LeaseRenewed(Fact, frozen=True, kw_only=True):
    """The process that still runs these actions got a later delivery of their command."""

    actions: tuple[str, ...]
    claim: Claim


class StepOffered(Fact, frozen=True, kw_only=True):
    """An execution is due and its committer had no free slot; the relay asks for a worker."""

    step: str
    trigger: str
    walk: int
    bindings: Bindings
    branch: str | None = None


class StepReused(Fact, frozen=True, kw_only=True):
    """A completed execution's results stand again, in a retry or a new walk. No step can bind this event."""

    step: str
    trigger: str
    action: str


class WalkStarted(Fact, frozen=True, kw_only=True):
    """A person or a migration restarts the run's graph, keeping the executions named by their actions."""

    n: int
    keep: tuple[str, ...]
    token: str | None
    by: str
    reason: str


class PreconditionFailed(Fact, frozen=True, kw_only=True):
    """The precondition of `step` raised for `trigger`. `waiting` were not looked at: they wait for the run to go on."""

    step: str
    trigger: str
    error: Failure
    waiting: tuple[str, ...] = ()


class RetryScheduled(Fact, frozen=True, kw_only=True):
    """The next attempt of an execution is due at `due`, woken by `timer`."""

    step: str
    trigger: str
    attempt: int
    due: int
    timer: str


TimerClass = Literal["send", "deadline", "retry", "wait"]


class TimerArmed(Fact, frozen=True, kw_only=True, rename={"timer_class": "class"}):
    """A wait without a worker. The timer's id is this event's name, never used again."""

    timer_class: TimerClass
    due: int
    about: str


class TimerFired(Fact, frozen=True, kw_only=True):
    """A pending timer's fire was accepted."""

    timer: str


class TimerCancelled(Fact, frozen=True, kw_only=True):
    """A pending timer will not be acted upon any more."""

    timer: str
    reason: str


class OperationIntended(Fact, frozen=True, kw_only=True):
    """An external side effect is about to be made; stored before the call."""

    key: str
    name: str
    action: str
    digest: str
    params: dict[str, Any]
    deadline: int
    approval: str | None = None
    reservation: str | None = None
    generation: int = 1


OperationOutcome = Literal["succeeded", "failed", "unknown", "absent"]


class OperationSettled(Fact, frozen=True, kw_only=True):
    """What came of an operation, and who says so. `unknown` is an outcome of its own."""

    key: str
    outcome: OperationOutcome
    by: Literal["call", "find", "person"]
    evidence: dict[str, Any] = {}


class OperationDisputed(Fact, frozen=True, kw_only=True):
    """A second, different outcome of an operation; kept for a person."""

    key: str
    outcome: OperationOutcome
    by: Literal["call", "find", "person"]
    evidence: dict[str, Any] = {}


class OperationRenewed(Fact, frozen=True, kw_only=True):
    """A person wants a side effect made once more: the step's next call under that key is of this generation."""

    operation: str
    generation: int
    by: str
    reason: str | None = None


class ChildRequested(Fact, frozen=True, kw_only=True):
    """Work is handed to another agent's run; the relay starts it."""

    request: str
    agent: str
    run: str
    start: msgspec.Raw
    deadline: int | None = None


class CancelRequested(Fact, frozen=True, kw_only=True):
    """Another run is asked to stop; the relay tells it."""

    target: str
    reason: str


class RunTold(Fact, frozen=True, kw_only=True):
    """Another run, or a system aggregate, is to learn a fact; the relay tells it, once.

    `event` is an external event of that run's agent, or a fact of that aggregate; `body` is its JSON.
    """

    agent: str
    run: str
    event: str
    schema: int
    body: msgspec.Raw


class CommandConvicted(Fact, frozen=True, kw_only=True):
    """A command killed its workers too often; it goes to DEAD and its run is failed."""

    command: str
    reason: str


class RunTakenOver(Fact, frozen=True, kw_only=True):
    """A person goes on with the run by hand: nothing of it begins any more until it is handed back."""

    by: str
    reason: str | None = None


class RunHandedBack(Fact, frozen=True, kw_only=True):
    """A person gives the run back: what was broken off and what is due begins again."""

    by: str
    reason: str | None = None


class RunEnded(Fact, frozen=True, kw_only=True):
    """The run entered a terminal state, or ended with an error (`reason`).

    Nothing follows but outcomes of operations, timers that ask for them, and facts that the agent's table still takes.
    """

    outcome: str
    result: str | None = None
    reason: str | None = None


EngineEvent = (
    RunStarted
    | EventPublished
    | ContextChanged
    | Transitioned
    | FieldsSet
    | StepBegan
    | StepCompleted
    | StepFailed
    | ActionAbandoned
    | ActionReleased
    | LeaseRenewed
    | StepOffered
    | StepReused
    | WalkStarted
    | PreconditionFailed
    | RetryScheduled
    | TimerArmed
    | TimerFired
    | TimerCancelled
    | ApprovalRequested
    | ApprovalDecided
    | ApprovalUsed
    | ApprovalRevoked
    | OperationIntended
    | OperationSettled
    | OperationDisputed
    | OperationRenewed
    | ChildRequested
    | CancelRequested
    | RunTold
    | CommandConvicted
    | RunTakenOver
    | RunHandedBack
    | RunEnded
    | Reserved
    | ReservationSettled
    | ThreadJoined
    | ThreadStatusSet
    | ThreadContextChanged
    | PolicyChanged
    | KillSwitchSet
    | GrantChanged
    | ArrivalAdmitted
    | SenderBlockSet
    | SenderTrustSet
    | OutcomeCounted
    | Spent
    | ReplyJudged
    | ThresholdMoved
)

ENGINE_EVENTS: dict[str, type[EngineEvent]] = {cls.__name__: cls for cls in get_args(EngineEvent)}
"""Every engine event's class by its name, which is the JSON member `type`."""
