"""The pure part of the projections: batches of commits to rows."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.projections import histories as h
from tests.unit.projections.memory_tables import MemoryTables, Row
from tests.unit.projections.random_runs import random_log

from waybook.engine.definition import Definition, Step, default_table
from waybook.engine.fold import fold
from waybook.engine.hold import hold as engine_hold
from waybook.engine.run import Approval, Run
from waybook.events.subjects import RunKey
from waybook.projections.errors import ProjectionStopped
from waybook.projections.hold import hold
from waybook.projections.progress import Entry, from_bytes

SEEDS = st.integers(0, 2**32)
DEFINITION = Definition.build(
    agent="inbox",
    hash="d1",
    steps=tuple(Step(name, ()) for name in h.STEPS),
    table=default_table(),
    kinds={},
    decode=lambda event, schema, payload: None,
)


def _tables(log: list[Entry], cuts: list[int]) -> MemoryTables:
    tables = MemoryTables()
    for begin, end in pairwise([0, *sorted(cuts), len(log)]):
        tables.apply(log[begin:end])
    return tables


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, cuts=st.lists(st.integers(0, 60), max_size=12))
def test_any_way_of_cutting_the_log_gives_the_same_rows(seed: int, cuts: list[int]) -> None:
    log = random_log(seed, runs=3, commits=60)
    whole, parts = _tables(log, []), _tables(log, cuts)
    singly = _tables(log, list(range(60)))
    assert whole.messages == parts.messages == singly.messages
    assert whole.actions == parts.actions == singly.actions
    assert whole.approvals == parts.approvals == singly.approvals
    assert whole.operations == parts.operations == singly.operations


@settings(max_examples=50, deadline=None)
@given(seed=SEEDS, begin=st.integers(0, 40), end=st.integers(0, 40))
def test_applying_commits_a_second_time_changes_nothing(seed: int, begin: int, end: int) -> None:
    log = random_log(seed, runs=2, commits=40)
    once, twice = _tables(log, []), _tables(log, [])
    twice.apply(log[min(begin, end) : max(begin, end)])
    assert once.messages == twice.messages
    assert once.actions == twice.actions
    assert once.approvals == twice.approvals
    assert once.operations == twice.operations


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
@example(seed=4162952279)  # a run is taken over while a step of it was told to wait
def test_rows_agree_with_the_engines_fold_after_every_commit(seed: int) -> None:
    tables = MemoryTables()
    runs: dict[RunKey, Run] = {}
    for entry in random_log(seed, runs=2, commits=40):
        tables.apply([entry])
        run = runs[entry.key] = fold(runs.get(entry.key), entry.commit, entry.sequence, key=entry.key)
        row = tables.message(entry.key)
        assert (row["status"], row["version"], row["walk"]) == (run.state, run.version, run.walk)
        assert row["outcome"] == run.outcome
        _same_actions(run, tables)
        _same_hold(run, row)
        assert {a: _status(approval) for a, approval in run.approvals.items()} == {
            a: row["status"] for a, row in tables.approvals_of(entry.key).items()
        }
        assert {o: (one.outcome or "intended", one.disputed[-1:]) for o, one in run.operations.items()} == {
            o: (row["status"], (row["disputed"],) if row["disputed"] else ())
            for o, row in tables.operations_of(entry.key).items()
        }


def _status(approval: Approval) -> str:
    if approval.revoked is not None:
        return "expired" if approval.revoked == "expired" else "revoked"
    if approval.used_by is not None:
        return "used"
    return approval.decided.decision if approval.decided is not None else "pending"


def _same_hold(run: Run, row: Row) -> None:
    """Where the engine sees no hold and nothing under way, the row names the state that a person or an event ends."""
    expected = engine_hold(DEFINITION, run)
    if expected.kind == "none" and row["hold"] == "waiting":
        assert row["hold_reason"] == run.state
        assert not run.ended and not run.open and not run.offers
    elif expected.reason in ("exhausted", "convicted"):  # where both apply, either comes first
        assert row["hold_reason"] in ("exhausted", "convicted")
    else:
        assert (row["hold"], row["hold_reason"], row["hold_until"]) == (expected.kind, expected.reason, expected.until)


def _same_actions(run: Run, tables: MemoryTables) -> None:
    rows = tables.actions_of(run.key)
    begun = {name: row for name, row in rows.items() if "/" not in name}
    assert set(begun) == set(run.actions)
    for name, action in run.actions.items():
        row = begun[name]
        newest = run.executions.get(action.execution) == name
        expected = ("pending" if newest else "skipped") if action.status in ("released", "waiting") else action.status
        assert row["status"] == expected
        assert (row["step"], row["attempt"], row["exhausted"]) == (action.step, action.attempt, action.exhausted)
        assert row["duration_ms"] == action.duration_ms
    progress = from_bytes(tables.message(run.key)["progress"])
    assert set(progress.open) == set(run.open)
    assert progress.failures == run.failures
    assert set(progress.timers) == set(run.timers)
    pending = {name: (timer.timer_class, timer.due, timer.about) for name, timer in run.timers.items()}
    assert tables.timers_of(run.key) == pending


def test_a_commit_that_does_not_follow_stops_the_projection() -> None:
    """A hole in a run's history means that rows are missing; going on would hide it."""
    tables = MemoryTables()
    first, second, third = (Entry(n, h.key(), h.commit(n, *h.started())) for n in (1, 2, 3))
    tables.apply([first])
    with pytest.raises(ProjectionStopped, match="version 3 at sequence 3 follows version 1"):
        tables.apply([third])
    with pytest.raises(ProjectionStopped, match="follows version 0"):
        MemoryTables().apply([second])


def test_a_first_commit_without_a_start_stops_the_projection() -> None:
    with pytest.raises(ProjectionStopped, match="starts nothing"):
        MemoryTables().apply([Entry(1, h.key(), h.commit(1, h.moved("received", "failed")))])


def test_hold_is_derived_from_what_is_stored() -> None:
    """The hold in a row is that of the progress beside it."""
    tables = MemoryTables()
    tables.apply(random_log(7, runs=5, commits=300))
    for row in tables.messages.values():
        assert row["hold"] == hold(from_bytes(row["progress"])).kind
