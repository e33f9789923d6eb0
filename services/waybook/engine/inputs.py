"""What reaches a run's decision, and what comes of it: small frozen types, closed by two unions."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.ledger import Ledger
from waybook.engine.aggregates.policy import Policy
from waybook.engine.aggregates.thread import Thread
from waybook.engine.contract import Contract
from waybook.engine.intents import Compensate, Effect, Renew, Settle
from waybook.engine.run import Run
from waybook.events.command import Command
from waybook.events.engine import Claim, ContextChange, EngineEvent, Failure, Parent, TokenUsage


class Output(msgspec.Struct, frozen=True):
    """A typed event that a step returned or that came from outside; `value` is the event itself.

    `ancestors` are its base types' names, nearest first, for readers that do not have its class.
    """

    event: str
    schema: int
    payload: msgspec.Raw
    value: Any
    branch: str | None = None
    ancestors: tuple[str, ...] = ()


class Start(msgspec.Struct, frozen=True):
    """Begin a run with `output`. `content` is the digest of the canonical content of what started it.

    `begins`: when its first step may begin (ms, UTC), None: at once.
    """

    output: Output
    content: str | None = None
    thread: str | None = None
    flags: tuple[str, ...] = ()
    configuration: dict[str, Any] = {}
    deadline_ms: int | None = None
    user: str | None = None
    parent: Parent | None = None
    begins: int | None = None


class Signal(msgspec.Struct, frozen=True):
    """An external event of the agent: a person's word, an answer (`request` names what it answers)."""

    output: Output
    request: str | None = None


class Move(msgspec.Struct, frozen=True):
    """A direct lifecycle call: the legal edges apply, the guards of the steps' events do not."""

    to_state: str
    fields: dict[str, Any] = {}
    reason: str | None = None


class Retry(msgspec.Struct, frozen=True):
    """Take a failed run up again. `timer` is set when its timer fired, None when a person asks.

    `how`: which way a person wants (a word that the agent's table knows), None: whatever the table says. `reason`: why.
    """

    timer: str | None = None
    how: str | None = None
    reason: str | None = None


class Cancel(msgspec.Struct, frozen=True):
    """Stop the run."""

    reason: str


class Continue(msgspec.Struct, frozen=True):
    """Look for a lost next move (claims, rule 7)."""


class Restart(msgspec.Struct, frozen=True):
    """Begin the next walk, keeping the results of the executions named by their actions."""

    keep: tuple[str, ...] = ()
    reason: str = "restarted by a person"


class TakeOver(msgspec.Struct, frozen=True):
    """A person goes on with the run by hand."""

    reason: str | None = None


class HandBack(msgspec.Struct, frozen=True):
    """A person gives a run back that was taken over."""

    reason: str | None = None


class Exec(msgspec.Struct, frozen=True):
    """Begin an offered execution."""

    step: str
    trigger: str


class Decide(msgspec.Struct, frozen=True):
    """A person's word on an approval; `approval` None: the only one that waits.

    `digest`: what the person saw, so that nothing else is decided on. `revoked` takes back what was asked or given.
    """

    decision: Literal["approved", "rejected", "revoked"]
    approval: str | None = None
    reason: str | None = None
    digest: str | None = None


class ChildAnswer(msgspec.Struct, frozen=True):
    """What became of the run that works on `request`. `result` names the event that ended it.

    `stop` and `fields` are that event's type and fields.
    """

    request: str
    agent: str
    run: str
    outcome: str
    result: str | None = None
    stop: str | None = None
    fields: dict[str, Any] = {}
    error: str | None = None


Body = (
    Start
    | Signal
    | Move
    | Retry
    | Cancel
    | Continue
    | Exec
    | Restart
    | Decide
    | Settle
    | Compensate
    | Renew
    | ChildAnswer
    | TakeOver
    | HandBack
)


class Delivered(msgspec.Struct, frozen=True):
    """A delivery of a command. `received_at` is when COMMANDS stored it (ms, UTC), `claim` which delivery it is.

    `person`: the actor is one, so a command without effect is refused instead of passed over. `held`: the claim
    under which this process walks the same command already; its actions are renewed, not begun again (rule 5).
    """

    command: Command
    body: Body
    claim: Claim
    received_at: int
    person: bool = False
    held: Claim | None = None


class Completed(msgspec.Struct, frozen=True):
    """A step's body returned. An action belongs to the one process that began it, so its id says whose result it is.

    `contracts` are the approvals that it asks for. `context` and `thread_context` are what it changed in the context of its run, and of its run's thread.
    """

    action: str
    outputs: tuple[Output, ...]
    duration_ms: int = 0
    model: str | None = None
    usage: TokenUsage | None = None
    reuse_key: str | None = None
    contracts: tuple[Contract, ...] = ()
    context: tuple[ContextChange, ...] = ()
    thread_context: tuple[ContextChange, ...] = ()


class Failed(msgspec.Struct, frozen=True):
    """A step's body raised, or its deadline passed. `not_before`: a Retry-After, ms UTC."""

    action: str
    error: Failure
    duration_ms: int = 0
    not_before: int | None = None
    model: str | None = None
    usage: TokenUsage | None = None


class Released(msgspec.Struct, frozen=True):
    """A worker that stops gracefully gives back the actions that it runs."""

    actions: tuple[str, ...]


Input = Delivered | Completed | Failed | Released | Effect


class World(msgspec.Struct, frozen=True):
    """What was read beside the run. `free_slots`: how many executions this worker may begin now.

    `gone`: claim sequences whose command COMMANDS no longer holds, by the leader's word. System aggregates are there
    when the decision needs them (`waybook.engine.needs`), by the leader's word; None: not read. `ledgers`: those that
    hold a reservation, by its name.
    """

    free_slots: int = 32
    gone: frozenset[int] = frozenset()
    facts: dict[str, Any] = {}
    policy: Policy | None = None
    grants: Grants | None = None
    thread: Thread | None = None
    ledgers: Mapping[str, Ledger] | None = None


class Accepted(msgspec.Struct, frozen=True):
    """The input changed the run.

    `asks`: operations whose other side is to be asked now what came of them. `wakes`: operations that are settled, and
    for which something waits that only a command can take up. `makes`: operations that whoever stored this commit calls
    now, for no body does.
    """

    asks: tuple[str, ...] = ()
    wakes: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """The input was refused; nothing changed. `reason` is a stable word."""

    reason: str
    text: str


class Nothing(msgspec.Struct, frozen=True):
    """There is nothing to do.

    Reasons: `applied` (the command's effect is stored), `already_there` (the run exists), `held` (this very
    claim runs it), `superseded` (a later delivery holds it: stay silent), `elsewhere` (another message with the same
    command holds it: wait), `no_worker` (the run is another definition's: to its lane), `nothing_due`,
    `resolved`, `unknown_timer`. About an operation: `intended` (this very intent is stored), `settled` (its outcome is
    known), `unresolved` (an earlier intent has to be reconciled first).
    """

    reason: str


Outcome = Accepted | Refused | Nothing


DiagnosticCode = Literal[
    "fixed_list_overflow",
    "late_event_discarded",
    "max_executions_reached",
    "precondition_unbound",
    "step_error_ignored",
]


class Diagnostic(msgspec.Struct, frozen=True):
    """A remark on a decision, for TRACE: what did not happen, and why. `text` is for people.

    `events`: types of events that were not stored.
    """

    code: DiagnosticCode
    text: str
    events: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True):
    """The events of one commit (none: nothing to append), one outcome an input, and the run as it will be.

    `run` has the new version but the old sequence until the commit is stored; None when there is none yet.
    `diagnostics` are remarks for TRACE.
    """

    events: tuple[EngineEvent, ...]
    outcomes: tuple[Outcome, ...]
    commands: tuple[str, ...]
    run: Run | None
    diagnostics: tuple[Diagnostic, ...] = ()
