"""A definition: what the engine knows of an agent. Steps' bodies stay outside (`waybook.agents`)."""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from waybook.engine.contract import Contract, NoContract
from waybook.engine.telling import Tells

if TYPE_CHECKING:
    from waybook.engine.inputs import World
    from waybook.engine.run import Published, Run

ParameterKind = Literal["required", "optional", "list", "optional_list", "fixed_list"]
EventKind = Literal["plain", "start", "stop", "external", "decision", "request", "delegation"]

KILL_SWITCH_ON = "KillSwitchOn"
"""The cause of a row by which a run turns back that has not begun to send, when the kill switch was turned on."""

RESTART_REQUESTED = "RestartRequested"
CANCEL_REQUESTED = "CancelRequested"
"""What the table is asked about when a person restarts a run that has left its initial state."""

FAILED = "failed"
"""The one state that every lifecycle shares: a step failed; nothing begins until a retry or a person moves the run."""

HASH_DIGITS = 16
SHAPE_DIGITS = 8
"""How much of a definition's hash is that of its shape: what stored runs rely on."""

FIVE_MINUTES_MS = 300_000
ONE_HOUR_MS = 3_600_000
TEN_MINUTES_MS = 600_000

Guard = Callable[["Run", Any, "World"], bool]
FieldsOf = Callable[["Run", Any], Mapping[str, Any]]
ReasonOf = Callable[["Run", Any], str | None]
KeepsOf = Callable[["Run", Any], Collection[str]]
ContractOf = Callable[["Run"], Contract | NoContract]
Objection = tuple[str, str]
"""Why something is refused: a stable word, and a text for people."""
Decode = Callable[[str, int, msgspec.Raw], Any]
Gate = Callable[["Run", "Published"], bool | None]
"""A step's precondition, bound to the log up to a trigger: whether the step may run, None while it cannot be asked.

It must be pure. It raises what the author's function raises.
"""


class Parameter(msgspec.Struct, frozen=True):
    """One event input of a step. `types` are exact type names; `size` is that of a fixed list."""

    name: str
    types: tuple[str, ...]
    kind: ParameterKind = "required"
    size: int | None = None

    @property
    def is_optional(self) -> bool:
        """Whether the step may run without it."""
        return self.kind in ("optional", "optional_list")


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and when a failed step runs again: at the next multiple of `grid_ms`, `max_failures` in all.

    `grid_ms` None: the installation's grid (five minutes by default). `wait_budget_ms`: how long one execution may wait
    because the other side asked it to (Retry-After) before a further wait counts as a failure.
    """

    max_failures: int = 3
    grid_ms: int | None = None
    wait_budget_ms: int = ONE_HOUR_MS


class Step(msgspec.Struct, frozen=True):
    """A step's declaration. `deadline_ms` bounds one attempt; `max_executions` bounds those of a walk, None: no limit."""

    name: str
    parameters: tuple[Parameter, ...]
    outputs: frozenset[str] = frozenset()
    retry: RetryPolicy = RetryPolicy()
    deadline_ms: int = TEN_MINUTES_MS
    code_hash: str = ""
    max_executions: int | None = None
    stop_on_error: bool = True

    @property
    def inputs(self) -> frozenset[str]:
        """All event types that may trigger the step, optional ones included."""
        return frozenset(t for p in self.parameters for t in p.types)


class Row(msgspec.Struct, frozen=True):
    """One row of a lifecycle table: in `state` (or `*`: any that is not terminal), on this event.

    `on` is an event type's name, `StopEvent` for any stop event, or one of the engine's causes `StepFailed`,
    `RetryRequested`, `CancelRequested`, `KillSwitchOn`. Without `next` only fields change. A row nothing drives yet has `on`
    empty: it stands for a legal edge that a direct lifecycle call may take. `restart`: with the transition a new
    walk begins, in which every step runs again but the executions whose completed actions `keeps` names: their results
    stand. `reads`: the system aggregates that its guard looks at in the world
    (`policy`, `grants`, `thread`); they are read from the leader before the decision, which costs a read each. Not `direct`: only its event takes it,
    no direct lifecycle call. `tells`: what others learn when it is taken (`waybook.engine.telling`).
    """

    name: str
    state: str
    on: str
    next: str | None = None
    guard: Guard | None = None
    fields: FieldsOf | None = None
    reason: ReasonOf | None = None
    restart: bool = False
    reads: tuple[str, ...] = ()
    direct: bool = True
    keeps: KeepsOf | None = None
    tells: Tells | None = None

    def leads_from(self, state: str) -> bool:
        """Whether it may be taken in `state`. No row leads from a state to itself, but from `failed`."""
        return self.state in (state, "*") and (self.next != state or state == FAILED)


class Window(msgspec.Struct, frozen=True):
    """What a state does a while after it was entered (`waybook.engine.windows`).

    `event`: the DecisionEvent that ends it, `fields` what it holds then. `delay_ms` 0: at once. `is_over`: whether the
    event took effect since the state was entered.
    """

    event: str
    fields: Callable[["Run"], Mapping[str, Any]]
    delay_ms: Callable[["Run", "World"], int]
    is_over: Callable[["Run"], bool]
    timer_class: Literal["send", "wait"] = "send"


class IntentGuard(msgspec.Struct, frozen=True):
    """What else has to hold when a side effect is intended: `objects` says why it does not, or None.

    It gets the run, the world with the aggregates in `reads`, and the name of the approval that the step gave.
    """

    objects: Callable[["Run", "World", str | None], Objection | None]
    reads: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True, dict=True):
    """A lifecycle: its states, rows in order of precedence, and what each parked state waits for.

    `contracts`: by state, what people are asked to approve while a run is in it. It is asked for on entering the
    state by whatever way, and anew when the run's fields make another contract of it. `windows`: by state, what it does
    after a while. `intents`: by name of a side effect, what has to hold when it is intended. `refusals`: by event, why a
    person's word of it has no effect on this run, None: the general reason. `because`: by state, why a run has come to
    stand in it, in words for people. `facts`: external events that a run still learns when it has ended.
    """

    initial: str
    states: frozenset[str]
    terminal: frozenset[str]
    rows: tuple[Row, ...]
    waits: Mapping[str, str] = {}
    contracts: Mapping[str, ContractOf] = {}
    windows: Mapping[str, Window] = {}
    intents: Mapping[str, IntentGuard] = {}
    refusals: Mapping[str, Callable[["Run"], Objection | None]] = {}
    because: Mapping[str, Callable[["Run"], str | None]] = {}
    facts: frozenset[str] = frozenset()

    def rows_of(self, state: str, on: tuple[str, ...]) -> tuple[Row, ...]:
        """The rows that one of the names in `on` may take in `state`, in order of precedence; none in a terminal one."""
        found = self._found.get((state, on))
        if found is None:
            rows = () if state in self.terminal else self.rows
            found = tuple(row for row in rows if row.on in on and row.leads_from(state))
            self._found[state, on] = found
        return found

    @cached_property
    def _found(self) -> dict[tuple[str, tuple[str, ...]], tuple[Row, ...]]:
        """What `rows_of` answered: every commit asks, and the questions are few (states times event types)."""
        return {}


class Way(msgspec.Struct, frozen=True):
    """What an event of one type does in one state: the rows that may take it, and the steps that may begin with it.

    `asks`: a row leads to a state in which people are asked.
    """

    rows: tuple[Row, ...]
    steps: tuple[Step, ...]
    asks: bool


class Definition(msgspec.Struct, frozen=True, dict=True):
    """An agent as the engine sees it. `hash` covers steps, event schemas and table (DESIGN 4, "Retry").

    It has 16 hexadecimal digits; two definitions that share the first eight differ in nothing but code.
    `kinds` says of every event type of the agent what it is; `decode` turns a stored payload into the typed
    event and must be pure. `reads`: by event type, the system aggregates that rows on it look at. `schemas`: versions
    of the events that the engine itself makes (answers of approvals), 1 unless given. `gates` are the steps'
    preconditions. `check_configuration` says what is wrong with the configuration of a new run, or None.
    `run_deadline_ms`: how long a run may stay open, None: no limit. `asks`: whether it hands work to
    other agents, or asks with a deadline; `answer_within_ms`: how long, by type of the question.
    `retry_grid_ms`: the grid of steps whose policy names none.
    """

    agent: str
    hash: str
    steps: Mapping[str, Step]
    table: Table
    kinds: Mapping[str, EventKind]
    decode: Decode
    takers: Mapping[str, tuple[Step, ...]] = {}
    reads: Mapping[str, frozenset[str]] = {}
    schemas: Mapping[str, int] = {}
    gates: Mapping[str, Gate] = {}
    check_configuration: Callable[[Mapping[str, Any]], str | None] | None = None
    run_deadline_ms: int | None = None
    asks: bool = False
    answer_within_ms: Mapping[str, int] = {}
    retry_grid_ms: int = FIVE_MINUTES_MS

    @classmethod
    def build(
        cls,
        *,
        agent: str,
        hash: str,
        steps: tuple[Step, ...],
        table: Table,
        kinds: Mapping[str, EventKind],
        decode: Decode,
        schemas: Mapping[str, int] | None = None,
        gates: Mapping[str, Gate] | None = None,
        check_configuration: Callable[[Mapping[str, Any]], str | None] | None = None,
        run_deadline_ms: int | None = None,
        answer_within_ms: Mapping[str, int] | None = None,
    ) -> "Definition":
        """A definition with the index from event type to the steps that take it, in order of declaration."""
        takers: dict[str, tuple[Step, ...]] = {}
        for step in steps:
            for name in step.inputs:
                takers[name] = (*takers.get(name, ()), step)
        named = {step.name: step for step in steps}
        reads: dict[str, frozenset[str]] = {}
        for row in table.rows:
            if row.reads:
                reads[row.on] = reads.get(row.on, frozenset()) | frozenset(row.reads)
        return cls(
            agent=agent,
            hash=hash,
            steps=named,
            table=table,
            kinds=kinds,
            decode=decode,
            takers=takers,
            reads=reads,
            schemas=schemas or {},
            gates=gates or {},
            check_configuration=check_configuration,
            run_deadline_ms=run_deadline_ms,
            asks="delegation" in kinds.values() or bool(answer_within_ms),
            answer_within_ms=answer_within_ms or {},
        )

    @cached_property
    def ways(self) -> dict[tuple[str, str], Way | None]:
        """By state and event type, as far as it was asked for (`waybook.engine.onward`): few, and every commit asks."""
        return {}

    def carries(self, definition: str) -> bool:
        """Whether it can continue runs that another definition decided last, named by its hash.

        It can if the two differ in nothing but code: the same steps with the same inputs and outputs, the same
        events, states and rows. Else the run belongs to a worker with that other definition.
        """
        if definition == self.hash or not definition:
            return True
        same_length = len(definition) == len(self.hash) == HASH_DIGITS
        return same_length and definition[:SHAPE_DIGITS] == self.hash[:SHAPE_DIGITS]


def default_table() -> Table:
    """The lifecycle of an agent that declares none (DESIGN 4)."""
    return Table(
        initial="running",
        states=frozenset({"running", "completed", "failed", "cancelled"}),
        terminal=frozenset({"completed", "cancelled"}),
        rows=(
            Row("complete", "running", "StopEvent", "completed"),
            Row("fail", "running", "StepFailed", "failed"),
            Row("retry", "failed", "RetryRequested", "running"),
            Row("restart", "failed", RESTART_REQUESTED, "running"),
            Row("cancel", "*", CANCEL_REQUESTED, "cancelled"),
        ),
    )
