"""What happens in a process, told to whoever counts it: one frozen object an occurrence, one Protocol.

The engine's shell tells; nothing here or there knows a metrics library. A hook is called on the event loop, in the
middle of the work: it returns at once and never raises. What is told is what this process did or saw, once; the log
stays the truth.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

StepOutcome = Literal["completed", "failed", "exhausted", "abandoned", "released"]
"""How an attempt ended. `exhausted`: it failed, and no automatic retry is left."""

BurialReason = Literal["rejected", "convicted", "undelivered"]
"""Why a command stands in DEAD.

`rejected`: it cannot be read or stored. `convicted`: it killed its workers too often. `undelivered`: it was delivered
again and again, and never decided.
"""


class CommitStored(msgspec.Struct, frozen=True, gc=False):
    """A commit is durable. `size`: bytes of its payload; `took_s`: seconds from the port's call to its answer."""

    agent: str
    events: int
    size: int
    took_s: float


class ConflictMet(msgspec.Struct, frozen=True, gc=False):
    """Another commit took the expected place; the run is read anew and decided again."""

    agent: str


class StepEnded(msgspec.Struct, frozen=True, gc=False):
    """The end of an attempt is durable. `duration_ms` is None where no body returned (abandoned, released)."""

    agent: str
    step: str
    outcome: StepOutcome
    duration_ms: int | None = None


class StepRemarked(msgspec.Struct, frozen=True, gc=False):
    """A body said a word about its attempt, which came to a result (`StepContext.remark`)."""

    agent: str
    step: str
    remark: str


class ModelCallsUncounted(msgspec.Struct, frozen=True, gc=False):
    """An attempt heard so many answers of models without a count of their tokens."""

    agent: str
    step: str
    calls: int


ApprovalStep = Literal["requested", "approved", "rejected", "used", "expired", "revoked"]
"""What became of an approval."""


class ApprovalMoved(msgspec.Struct, frozen=True, gc=False):
    """An approval was asked for, decided, used, or stands no more."""

    agent: str
    step: ApprovalStep


class GroupSent(msgspec.Struct, frozen=True, gc=False):
    """So many commits went to the server in one publish: 1 singly, more as one atomic batch."""

    size: int


class CommandsTaken(msgspec.Struct, frozen=True, gc=False):
    """One pull of `consumer` brought `count` deliveries; `again` of them were not the first of their command."""

    consumer: str
    count: int
    again: int


class CommandRefused(msgspec.Struct, frozen=True, gc=False):
    """A command was answered with a refusal; `reason` is a stable word."""

    reason: str


class CommandBuried(msgspec.Struct, frozen=True, gc=False):
    """A command stands in DEAD."""

    reason: BurialReason


class CommandMoved(msgspec.Struct, frozen=True, gc=False):
    """A command went to the lane of its run's definition, which this walker does not carry."""


class ClaimsLost(msgspec.Struct, frozen=True, gc=False):
    """After a pause longer than the lease every claim of this process counts as lost."""


class BatchProjected(msgspec.Struct, frozen=True, gc=False):
    """Read models and checkpoint moved over `commits` commits of `stream`. `took_s`: seconds of the transaction."""

    stream: str
    commits: int
    took_s: float


class ProjectionRestarted(msgspec.Struct, frozen=True, gc=False):
    """The reader of `stream` goes back to its checkpoint: PostgreSQL or NATS was away, or the position moved."""

    stream: str


class TimersArmed(msgspec.Struct, frozen=True, gc=False):
    """A timer of this class stands in TIMERS that did not before."""

    timer_class: str


class TimerHandedOver(msgspec.Struct, frozen=True, gc=False):
    """A fire became a command, `late_s` seconds after its due time by the scheduler's clock."""

    timer_class: str
    late_s: float


class TimerRearmed(msgspec.Struct, frozen=True, gc=False):
    """A fire came early by the scheduler's clock and was armed again."""

    timer_class: str


class CommandGiven(msgspec.Struct, frozen=True, gc=False):
    """The scheduler stored a command, fires included."""

    verb: str


Details = (
    CommitStored
    | ConflictMet
    | StepEnded
    | ModelCallsUncounted
    | StepRemarked
    | ApprovalMoved
    | GroupSent
    | CommandsTaken
    | CommandRefused
    | CommandBuried
    | CommandMoved
    | ClaimsLost
    | BatchProjected
    | ProjectionRestarted
    | TimersArmed
    | TimerHandedOver
    | TimerRearmed
    | CommandGiven
)


class Hook(Protocol):
    """Is told what happens. A new kind of details may come with any version: pass over those that you do not know."""

    def __call__(self, details: Details, /) -> None: ...


def ignore(details: Details, /) -> None:
    """The hook where nobody counts."""


class WalkerState(msgspec.Struct, frozen=True):
    """A walker at this moment: what cannot be counted, only looked at.

    `healthy`: its ports answer, so it takes commands. `runs`: run actors in memory. `slots` and `taken`, by consumer:
    how many commands it may hold at once, and how many it holds.
    """

    healthy: bool
    runs: int
    slots: Mapping[str, int]
    taken: Mapping[str, int]


class ProjectionState(msgspec.Struct, frozen=True):
    """A projection at this moment. `healthy`: it runs, or stands by for another reader; `active`: it is the reader.

    `position`: the last sequence applied; None before it is known, and on standby. The lag is None when the log does
    not answer; `lag_s` is the age of the oldest commit that is not applied, in seconds, 0.0 when there is none.
    """

    stream: str
    healthy: bool
    active: bool
    position: int | None = None
    lag_events: int | None = None
    lag_s: float | None = None


class SchedulerState(msgspec.Struct, frozen=True):
    """A scheduler at this moment. `healthy`: its ports answer."""

    healthy: bool
