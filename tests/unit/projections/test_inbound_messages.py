"""Rows of `inbound_messages`: lifecycle state, companion fields, hold."""

from typing import Any

import msgspec
import pytest
from tests.unit.projections import histories as h
from tests.unit.projections.memory_tables import MemoryTables, Row

from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.events.engine import EngineEvent
from waybook.projections.progress import Entry


def _row(*commits: Commit) -> Row:
    tables = MemoryTables()
    for commit in commits:
        tables.apply([Entry(commit.version, h.key(), commit)])
    return tables.message(h.key())


def _after(*events: EngineEvent) -> Row:
    return _row(h.commit(1, *h.started()), h.commit(2, *events))


def test_the_start_event_gives_sender_subject_and_date() -> None:
    row = _row(h.commit(1, *h.started()))
    assert (row["sender"], row["subject"], row["date"]) == ("ann@example.org", "An invoice", "2026-01-01")
    assert (row["status"], row["thread"], row["received_at"]) == ("received", "t1", h.BEGAN_AT + 1)


@pytest.mark.parametrize(
    ("payload", "sender", "subject"),
    [
        (b'{"from": {"address": "a@b"}, "subject": null}', '{"address": "a@b"}', None),
        (b'{"subject": "nul\\u0000", "from": 7}', "7", "nul\ufffd"),
        (b"[1, 2]", None, None),
        (b'"text"', None, None),
    ],
)
def test_any_start_event_can_be_projected(payload: bytes, sender: str | None, subject: str | None) -> None:
    """Agents of users may start with anything; what is there and is text is shown."""
    started = e.EventPublished(event="Hook", schema=1, payload=msgspec.Raw(payload))
    row = _row(h.commit(1, h.started()[0], started))
    assert (row["sender"], row["subject"]) == (sender, subject)


def test_fields_are_merged_and_cleared() -> None:
    """A later transition wins; a null stands for "cleared"."""
    row = _row(
        h.commit(1, *h.started()),
        h.commit(2, h.moved("received", "security_check", security_flags={"spamScore": 1}, draft_subject="A")),
        h.commit(3, e.FieldsSet(row="f", fields={"security_flags": None, "draft_response": "Hi"})),
    )
    assert row["fields"] == {"security_flags": None, "draft_subject": "A", "draft_response": "Hi"}


def test_a_failure_sets_the_error_and_leaving_it_clears_it() -> None:
    failing = (
        h.commit(1, *h.started(), h.began("1.2")),
        h.commit(2, h.failed("1.2"), h.moved("drafting", "failed", error_message="draft: no answer")),
    )
    row = _row(*failing)
    assert (row["status"], row["error_message"], row["processed_at"]) == ("failed", "draft: no answer", h.BEGAN_AT + 2)
    assert _row(*failing, h.commit(3, h.moved("failed", "received")))["error_message"] is None


def test_a_failure_without_a_field_shows_its_own_text() -> None:
    row = _row(h.commit(1, *h.started(), h.began("1.2")), h.commit(2, h.failed("1.2")))
    assert row["error_message"] == "no answer"


@pytest.mark.parametrize("state", ["approved", "sent", "rejected", "archived", "failed", "completed"])
def test_processed_at_is_the_time_of_entering_a_final_or_approved_state(state: str) -> None:
    assert _after(h.moved("received", state))["processed_at"] == h.BEGAN_AT + 2
    assert _after(h.moved("received", state, processed_at=7))["processed_at"] == 7
    assert _after(h.moved("received", "drafting"))["processed_at"] is None


def test_the_end_of_a_run_is_kept() -> None:
    row = _after(h.moved("received", "archived", archive_reason="spam"), e.RunEnded(outcome="archived"))
    assert (row["outcome"], row["ended_at"], row["hold"]) == ("archived", h.BEGAN_AT + 2, "none")


def _asked(**changes: Any) -> e.ApprovalRequested:
    members = {
        "action": "a", "resource": "r", "scope": "s", "digest": "d", "requester": "q", "deciders": (),
        "expires": 5, "policy": 1,
    }  # fmt: skip
    return e.ApprovalRequested(**{**members, **changes})


RETRY = (
    e.TimerArmed(timer_class="retry", due=9, about="x"),
    e.RetryScheduled(step="draft", trigger="1.1", attempt=2, due=9, timer="2.0"),
)
HOLDS: dict[str, tuple[tuple[EngineEvent, ...], tuple[str, str | None, int | None]]] = {
    "a running step": ((h.began("2.0"),), ("none", None, None)),
    "an offered step": ((e.StepOffered(step="draft", trigger="1.1", walk=1, bindings={}),), ("none", None, None)),
    "an approval": ((_asked(),), ("waiting", "approval", 5)),
    "a parked state": ((h.moved("received", "draft_ready"),), ("waiting", "draft_ready", None)),
    "an undo window": ((e.TimerArmed(timer_class="send", due=8, about="x"),), ("waiting", "send", 8)),
    "a retry": ((*RETRY, h.moved("drafting", "failed")), ("retry", "retry", 9)),
    "no retry left": ((h.moved("drafting", "failed"),), ("waiting", "exhausted", None)),
    "an unknown outcome": (
        (
            e.OperationIntended(key="k", name="send", action="a", digest="d", params={}, deadline=1),
            e.OperationSettled(key="k", outcome="unknown", by="call"),
        ),
        ("reconciling", "unknown_outcome", None),
    ),
    "a killing command": (
        (
            h.began("2.0"),
            e.ActionAbandoned(action="2.0", reason="lost", failures=3, exhausted=True),
            e.CommandConvicted(command="c1", reason="r"),
            h.moved("drafting", "failed"),
        ),
        ("dead command", "convicted", None),
    ),
}


@pytest.mark.parametrize("case", HOLDS)
def test_a_run_that_does_not_move_names_its_hold(case: str) -> None:
    events, expected = HOLDS[case]
    row = _after(*events)
    assert (row["hold"], row["hold_reason"], row["hold_until"]) == expected


def test_a_run_that_was_told_to_wait_says_until_when() -> None:
    due = h.BEGAN_AT + 900
    row = _row(
        h.commit(1, *h.started("drafting"), h.began("1.2")),
        h.commit(
            2,
            e.ActionReleased(action="1.2", reason="wait", until=due),
            e.TimerArmed(timer_class="wait", due=due, about="1:draft:1.1"),
        ),
    )
    assert (row["hold"], row["hold_reason"], row["hold_until"]) == ("waiting", "rate_limit", due)
