"""What a person wrote or approved is never replaced by a later draft (DESIGN 2, invariant 10)."""

from typing import Any

import pytest

from waybook.engine.aggregates.policy import Policy
from waybook.engine.aggregates.thread import Thread
from waybook.engine.inputs import World
from waybook.engine.lifecycle import matching_row
from waybook.engine.run import Run
from waybook.events.subjects import RunKey
from waybook.events.typed import Event
from waybook.inbox import events as ev
from waybook.inbox.classify import Classification, Intent
from waybook.inbox.draft import Draft
from waybook.inbox.route import Routed
from waybook.inbox.table import TABLE

CLASSIFIED = Classification(
    intents=(Intent(category="support", priority="normal", sentiment="neutral", intent="question", confidence=0.9),)
)
NEW = ev.DraftProposed(draft=Draft(text="A new draft.", subject="Re: x"), classification=CLASSIFIED)
AGREED = ev.AutoApproved(routed=Routed(decision="auto_approve", reason="every gate agrees"))
WORLD = World(policy=Policy(), thread=Thread())
PEOPLES: list[dict[str, Any]] = [{"is_draft_edited": True}, {"approval_source": "human"}]


def drafting(**fields: Any) -> Run:
    """A run that is drafted anew, with what it held before."""
    key = RunKey("main", "inbox", "r1")
    return Run(key=key, agent="inbox", definition="d", state="drafting", started_at=1, fields=fields)


def taken(run: Run, event: Event) -> tuple[str, dict[str, Any]]:
    """The next state, if any, and the fields that the table's row for the event sets."""
    row = matching_row(TABLE, run, (type(event).__name__,), event, WORLD)
    assert row is not None and row.fields is not None
    return row.next or run.state, dict(row.fields(run, event))


@pytest.mark.parametrize("peoples", PEOPLES)
def test_a_later_draft_becomes_a_proposal_beside_a_person_s_text(peoples: dict[str, Any]) -> None:
    _, fields = taken(drafting(draft_response="By hand.", **peoples), NEW)
    assert set(fields) == {"draft_proposal"}
    assert fields["draft_proposal"]["text"] == "A new draft."


@pytest.mark.parametrize("peoples", PEOPLES)
def test_nothing_approves_itself_over_a_person_s_text(peoples: dict[str, Any]) -> None:
    state, fields = taken(drafting(draft_response="By hand.", **peoples), AGREED)
    assert (state, fields["agent_decision"]["gate"]) == ("draft_ready", "human_text")
    assert "approval_source" not in fields


def test_the_agent_s_own_draft_is_replaced() -> None:
    run = drafting(draft_response="An old draft.")
    assert taken(run, NEW)[1]["draft_response"] == "A new draft."
    assert taken(run, AGREED)[0] == "approved"


def test_a_subject_that_a_person_saved_is_one_line() -> None:
    """Two would be no header, and the reply that was approved could never leave."""
    saved = ev.DraftSaved(by="ann", text="By hand.", subject="Re: Order\r\nBcc: eve@evil.example")
    run = drafting(draft_response="An old draft.")
    run.state = "draft_ready"
    assert taken(run, saved)[1]["draft_subject"] == "Re: Order Bcc: eve@evil.example"
