"""What a walker counts, and how it stands."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from waybook.adapters.metrics.cells import Distribution, Tallies, Tally
from waybook.adapters.metrics.source import gauge
from waybook.engine.hooks import (
    ApprovalMoved,
    ApprovalStep,
    BurialReason,
    ClaimsLost,
    CommandBuried,
    CommandMoved,
    CommandRefused,
    CommandsTaken,
    CommitStored,
    ConflictMet,
    Details,
    GroupSent,
    ModelCallsUncounted,
    StepEnded,
    StepOutcome,
    StepRemarked,
    WalkerState,
)

APPEND_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
STEP_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
GROUP = (1, 2, 5, 6, 10, 20, 40, 64, 100, 150, 200)
"""Fewer than 6 commits go singly; a batch has 200 at most."""

COMMITS = {
    "waybook_commits": "Commits stored.",
    "waybook_events": "Events in the commits stored.",
    "waybook_commit_bytes": "Payload of the commits stored.",
}
REFUSALS = (
    "already_decided",
    "changed",
    "expired",
    "illegal_edge",
    "invalid_input",
    "message_not_found",
    "not_permitted",
    "revoked",
    "stale",
    "terminal",
    "unknown_agent",
    "unreadable",
)
"""Reasons that are told from the start; there may be others."""


class WalkerMetrics:
    """The hook of a walker's process, and the source of what it counted.

    `steps`: the names of each carried agent's steps, so that all of them are told from the start; `consumers` those
    that the walker pulls from. A counter that first appears with its first occurrence hides that occurrence from
    Prometheus' `increase`.
    """

    def __init__(self, steps: Mapping[str, Iterable[str]] | None = None, consumers: Iterable[str] = ()) -> None:
        ends = [(a, s, o) for a, names in (steps or {}).items() for s in names for o in get_args(StepOutcome)]
        agents = [(agent,) for agent in steps or {}]
        named = [(consumer,) for consumer in consumers]
        self._commits = Tallies(COMMITS, ("agent",), agents)
        self._append = Distribution("waybook_append_seconds", "From the append of a commit to its answer.", APPEND_S)
        self._group = Distribution("waybook_group_size_commits", "Commits sent to the server together.", GROUP)
        self._conflicts = Tally(
            "waybook_append_conflicts", "Appends whose place another commit took.", ("agent",), agents
        )
        self._steps = Tally("waybook_steps", "Attempts at steps that ended.", ("agent", "step", "outcome"), ends)
        self._durations = Distribution(
            "waybook_step_duration_seconds", "How long attempts took that returned or raised.", STEP_S,
            ("agent", "step", "outcome"), [end for end in ends if end[2] == "completed"],
        )  # fmt: skip
        self._approvals = Tally(
            "waybook_approvals", "What became of approvals.", ("agent", "step"),
            [(a, s) for (a,) in agents for s in get_args(ApprovalStep)],
        )  # fmt: skip
        self._uncounted = Tally(
            "waybook_model_calls_uncounted", "Answers of models that came without a count of their tokens.",
            ("agent", "step"), [(a, s) for a, names in (steps or {}).items() for s in names],
        )  # fmt: skip
        self._remarks = Tally(
            "waybook_step_remarks", "Words that steps say about their attempts.", ("agent", "step", "remark"), ()
        )
        self._taken = Tally("waybook_deliveries", "Deliveries of commands taken.", ("consumer",), named)
        self._again = Tally(
            "waybook_redeliveries", "Deliveries of commands that were delivered before.", ("consumer",), named
        )
        self._refused = Tally(
            "waybook_commands_refused", "Commands answered with a refusal.", ("reason",), [(r,) for r in REFUSALS]
        )
        self._buried = Tally(
            "waybook_dead_letters", "Commands put into DEAD.", ("reason",), [(r,) for r in get_args(BurialReason)]
        )
        self._moved = Tally("waybook_commands_moved", "Commands moved to the lane of a definition not carried here.")
        self._lost = Tally("waybook_claims_lost", "Times when all leases were lost to a pause.")
        self._counted = (
            self._append, self._group, self._conflicts, self._steps, self._durations, self._approvals, self._uncounted,
            self._remarks, self._taken, self._again, self._refused, self._buried, self._moved, self._lost,
        )  # fmt: skip
        self._handlers = self._handling()

    def __call__(self, details: Details, /) -> None:
        """See Hook."""
        handler = self._handlers.get(type(details))
        if handler is not None:
            handler(details)

    def _handling(self) -> dict[type, Callable[[Any], None]]:
        """What counts each kind of detail."""
        return {
            CommitStored: self._commit_stored,
            ConflictMet: lambda told: self._conflicts.add((told.agent,)),
            StepEnded: self._step_ended,
            ApprovalMoved: lambda told: self._approvals.add((told.agent, told.step)),
            ModelCallsUncounted: lambda told: self._uncounted.add((told.agent, told.step), told.calls),
            StepRemarked: lambda told: self._remarks.add((told.agent, told.step, told.remark)),
            GroupSent: lambda told: self._group.observe(told.size),
            CommandsTaken: self._commands_taken,
            CommandRefused: lambda told: self._refused.add((told.reason,)),
            CommandBuried: lambda told: self._buried.add((told.reason,)),
            CommandMoved: lambda told: self._moved.add(),
            ClaimsLost: lambda told: self._lost.add(),
        }

    async def families(self) -> Iterable[Metric]:
        """See Source."""
        return [*self._commits.families(), *(counted.family() for counted in self._counted)]

    def _commit_stored(self, told: CommitStored) -> None:
        row = self._commits.row((told.agent,))
        row[0] += 1
        row[1] += told.events
        row[2] += told.size
        self._append.observe(told.took_s)

    def _step_ended(self, told: StepEnded) -> None:
        labels = (told.agent, told.step, told.outcome)
        self._steps.add(labels)
        if told.duration_ms is not None:
            self._durations.observe(told.duration_ms / 1000, labels)

    def _commands_taken(self, told: CommandsTaken) -> None:
        consumer = (told.consumer,)
        self._taken.add(consumer, told.count)
        if told.again:
            self._again.add(consumer, told.again)


class WalkerGauges:
    """How a walker stands, and whether NATS answers it."""

    def __init__(self, state: Callable[[], WalkerState], connected: Callable[[], bool]) -> None:
        self._state = state
        self._connected = connected

    async def families(self) -> Iterable[Metric]:
        """See Source."""
        state = self._state()
        slots = GaugeMetricFamily("waybook_slots", "Commands that the walker may hold.", labels=("consumer",))
        taken = GaugeMetricFamily("waybook_slots_taken", "Commands that the walker holds.", labels=("consumer",))
        for family, values in ((slots, state.slots), (taken, state.taken)):
            for consumer, value in values.items():
                family.add_metric((consumer,), value)
        return [
            gauge("waybook_walker_healthy", "1: the walker takes commands, 0: a port does not answer.", state.healthy),
            gauge("waybook_nats_connected", "1: the connection to NATS stands.", self._connected()),
            gauge("waybook_runs_in_memory", "Runs that the walker works on.", state.runs),
            slots,
            taken,
        ]
