"""Rows of `agent_actions`: one an attempt, with the retry rules of the documents."""

import msgspec
from tests.unit.projections import histories as h
from tests.unit.projections.memory_tables import MemoryTables, Row

from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.projections.progress import Entry

KEY = h.key()


def _rows(*commits: Commit) -> dict[str, Row]:
    tables = MemoryTables()
    for commit in commits:
        tables.apply([Entry(commit.version, KEY, commit)])
    return tables.actions_of(KEY)


def _retry(version: int, *, attempt: int = 2) -> tuple[e.EngineEvent, ...]:
    timer = f"{version}.1"
    armed = e.TimerArmed(timer_class="retry", due=h.BEGAN_AT + 900, about="1:draft:1.1")
    return armed, e.RetryScheduled(step="draft", trigger="1.1", attempt=attempt, due=h.BEGAN_AT + 900, timer=timer)


def test_an_attempt_that_completes_keeps_its_output_model_and_usage() -> None:
    first = h.commit(1, *h.started(), h.began("1.2"))
    second = h.commit(2, h.completed("1.2", 1), h.published("Drafted", "1.2", text="Hi"))
    row = _rows(first, second)["1.2"]
    assert (row["status"], row["attempt"], row["retry_count"], row["exhausted"]) == ("completed", 1, 0, False)
    assert (row["started_at"], row["ended_at"], row["duration_ms"]) == (h.BEGAN_AT + 1, h.BEGAN_AT + 2, 12)
    assert row["model_used"] == "rules"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert msgspec.json.decode(row["token_usage"]) == usage
    assert msgspec.json.decode(row["output"]) == [{"event": "Drafted", "payload": {"text": "Hi"}}]


def test_failures_are_carried_from_attempt_to_attempt_and_the_last_stays_failed_exhausted() -> None:
    """Three failures of (run, step): three rows; the last is failed and exhausted, never abandoned."""
    rows = _rows(
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, h.failed("1.2", failures=1)),
        h.commit(3, h.began("3.0", attempt=2)),
        h.commit(4, h.failed("3.0", failures=2)),
        h.commit(5, h.began("5.0", attempt=3)),
        h.commit(6, h.failed("5.0", failures=3, exhausted=True)),
    )
    shown = [(r["attempt"], r["status"], r["retry_count"], r["exhausted"]) for r in rows.values()]
    assert shown == [(1, "failed", 1, False), (2, "failed", 2, False), (3, "failed", 3, True)]
    assert {(r["error_type"], r["error_message"]) for r in rows.values()} == {("TimeoutError", "no answer")}


def test_a_row_that_begins_shows_the_failures_before_it() -> None:
    rows = _rows(
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, h.failed("1.2", failures=1)),
        h.commit(3, h.began("3.0", attempt=2)),
    )
    assert (rows["3.0"]["status"], rows["3.0"]["retry_count"]) == ("running", 1)


def test_a_retry_is_pending_from_its_timers_fire_until_it_begins() -> None:
    """Before the timer fires there is no row; after the begin the pending row is gone and the attempt has its own."""
    failing = (
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, h.failed("1.2"), *_retry(2)),
    )
    assert list(_rows(*failing)) == ["1.2"]
    fired = (*failing, h.commit(3, e.TimerFired(timer="2.1")))
    pending = _rows(*fired)["3.0/draft"]
    assert (pending["status"], pending["attempt"], pending["retry_count"]) == ("pending", 2, 1)
    begun = _rows(*fired, h.commit(4, h.began("4.0", attempt=2)))
    assert {name: row["status"] for name, row in begun.items()} == {"1.2": "failed", "4.0": "running"}


def test_a_retry_that_begins_with_its_timers_fire_leaves_no_pending_row() -> None:
    rows = _rows(
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, h.failed("1.2"), *_retry(2)),
        h.commit(3, e.TimerFired(timer="2.1"), h.began("3.1", attempt=2)),
    )
    assert {name: row["status"] for name, row in rows.items()} == {"1.2": "failed", "3.1": "running"}


def test_an_offer_is_pending_until_a_worker_begins_it() -> None:
    offer = e.StepOffered(step="draft", trigger="1.1", walk=1, bindings={}, branch="b1")
    offered = h.commit(1, *h.started(), offer)
    row = _rows(offered)["1.2/draft"]
    assert (row["status"], row["attempt"], row["branch"], row["started_at"]) == ("pending", 1, "b1", None)
    assert set(_rows(offered, h.commit(2, h.began("2.0")))) == {"2.0"}


def test_a_released_attempt_is_due_again_and_counts_for_nothing() -> None:
    """Given back it is pending; once the next attempt has begun it is skipped, and no failure was counted."""
    released = (
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, e.ActionReleased(action="1.2", reason="stop")),
    )
    assert _rows(*released)["1.2"]["status"] == "pending"
    rows = _rows(*released, h.commit(3, h.began("3.0", attempt=2)))
    assert {name: (r["status"], r["retry_count"]) for name, r in rows.items()} == {
        "1.2": ("skipped", 0),
        "3.0": ("running", 0),
    }


def test_a_lost_worker_abandons_its_attempt_and_counts_as_a_failure() -> None:
    lost = e.ActionAbandoned(action="1.2", reason="lost", failures=1)
    rows = _rows(h.commit(1, *h.started(), h.began("1.2")), h.commit(2, lost, h.began("2.1", attempt=2)))
    assert (rows["1.2"]["status"], rows["1.2"]["retry_count"]) == ("abandoned", 1)
    assert rows["1.2"]["error_message"] == "its worker was lost"
    assert (rows["2.1"]["status"], rows["2.1"]["retry_count"]) == ("running", 1)


def test_closing_a_run_abandons_without_counting_and_skips_what_was_due() -> None:
    offer = e.StepOffered(step="route", trigger="1.1", walk=1, bindings={})
    closed = (
        e.ActionAbandoned(action="1.2", reason="closed"),
        e.RunEnded(outcome="archived"),
    )
    rows = _rows(h.commit(1, *h.started(), h.began("1.2"), offer), h.commit(2, *closed))
    assert {name: (r["status"], r["retry_count"]) for name, r in rows.items()} == {
        "1.2": ("abandoned", 0),
        "1.3/route": ("skipped", 0),
    }


def test_a_new_walk_begins_rows_of_its_own() -> None:
    """What was due in the walk before will not begin."""
    offer = e.StepOffered(step="route", trigger="1.1", walk=1, bindings={})
    again = e.WalkStarted(n=2, keep=(), token=None, by="ann", reason="redraft")
    rows = _rows(h.commit(1, *h.started(), offer), h.commit(2, again, h.began("2.1", walk=2), walk=2))
    assert {name: (r["status"], r["walk"]) for name, r in rows.items()} == {
        "1.2/route": ("skipped", 1),
        "2.1": ("running", 2),
    }


def test_a_wait_that_was_asked_for_is_pending_until_the_next_attempt_begins() -> None:
    """It did not fail, and no worker holds it."""
    waiting = (
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, e.ActionReleased(action="1.2", reason="wait", until=h.BEGAN_AT + 700), _wait(h.BEGAN_AT + 700)),
    )
    assert _rows(*waiting)["1.2"]["status"] == "pending"
    rows = _rows(*waiting, h.commit(3, e.TimerFired(timer="2.1"), h.began("3.1", attempt=2)))
    assert {name: row["status"] for name, row in rows.items()} == {"1.2": "skipped", "3.1": "running"}


def test_a_wait_in_a_run_that_ends_is_abandoned() -> None:
    rows = _rows(
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, e.ActionReleased(action="1.2", reason="wait", until=h.BEGAN_AT + 700), _wait(h.BEGAN_AT + 700)),
        h.commit(
            3,
            e.ActionAbandoned(action="1.2", reason="closed"),
            e.TimerCancelled(timer="2.1", reason="closed"),
            e.RunEnded(outcome="cancelled"),
        ),
    )
    assert rows["1.2"]["status"] == "abandoned"


def _wait(due: int) -> e.TimerArmed:
    return e.TimerArmed(timer_class="wait", due=due, about="1:draft:1.1")
