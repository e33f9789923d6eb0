"""The lifecycle table: a step proposes, the table disposes, decide writes (DESIGN 4)."""

import pytest
from tests.unit.engine.definitions import CHAIN, PIPELINE, PIPELINE_TABLE, build, step, takes
from tests.unit.engine.history import History, accepted, output, refused

from waybook.engine.definition import FAILED, Row, Table
from waybook.engine.inputs import Cancel, Completed, Move, Retry, Signal, Start, World
from waybook.events import engine as e


def pipeline(state: str = "drafting") -> History:
    """A mail walked to a state by results of its steps."""
    history = History(PIPELINE)
    history.start("Mail")
    ways = {
        "security_check": (),
        "quarantined": (("scan", "Threat"),),
        "classifying": (("scan", "Clean"),),
        "drafting": (("scan", "Clean"), ("context", "Context"), ("classify", "Classified")),
        "draft_ready": (
            ("scan", "Clean"), ("context", "Context"), ("classify", "Classified"), ("draft", "Draft"),
            ("route", "Review"),
        ),
    }  # fmt: skip
    for name, event in ways[state]:
        history.complete(name, event)
    assert history.it.state == state
    return history


def test_the_first_row_whose_guard_holds_decides() -> None:
    """An automated mail takes the row before the usual one; nothing begins."""
    history = History(PIPELINE)
    history.start("Mail", automated="list")
    assert (history.it.state, history.it.outcome, history.running()) == ("archived", "archived", [])


def test_a_guard_is_asked_when_the_commit_is_decided() -> None:
    """The kill switch turns a proposed approval into the next row's state."""
    for kill_switch, state in ((True, "draft_ready"), (False, "approved")):
        history = pipeline()
        history.complete("draft", "Draft")
        history.complete("route", "Auto", world=World(facts={"kill_switch": kill_switch}))
        assert history.it.state == state


def test_a_transition_carries_its_fields_and_its_reason() -> None:
    history = pipeline("quarantined")
    history.give(Signal(output("Blocked", reason="rude")))
    moved = next(ev for ev in history.last if isinstance(ev, e.Transitioned))
    assert (moved.row, moved.from_state, moved.to_state, moved.reason) == ("E7", "quarantined", "archived", "rude")


def test_a_row_without_a_next_state_sets_fields_only() -> None:
    history = pipeline()
    history.complete("draft", output("Draft", text="Hello"))
    assert history.it.state == "drafting"
    assert history.it.fields["flags"] == {"text": "Hello"}


def test_an_event_that_no_row_knows_changes_nothing_and_still_triggers() -> None:
    history = pipeline("classifying")
    history.complete("context", "Context")
    assert (history.it.state, history.running()) == ("classifying", ["classify"])


def test_a_star_row_holds_in_every_state_that_is_not_terminal() -> None:
    for state in ("security_check", "quarantined", "classifying", "drafting", "draft_ready"):
        history = pipeline(state)
        assert accepted(history.signal("Blocked"))
        assert history.it.state == "archived"


def test_entering_a_terminal_state_ends_the_run_and_closes_what_is_open() -> None:
    """Open actions are abandoned as closed, timers cancelled, in the same commit; closing is no failure."""
    history = pipeline("classifying")
    history.signal("Blocked")
    assert [a.status for a in history.it.actions.values()] == ["completed", "abandoned"]
    assert history.it.failures == {}
    assert isinstance(history.last[-1], e.RunEnded)


def test_nothing_leaves_a_terminal_state() -> None:
    history = pipeline("quarantined")
    history.signal("Blocked")
    assert refused(history.signal("Released")) == "terminal"
    assert refused(history.give(Move("received"))) == "terminal"
    assert refused(history.give(Retry())) == "terminal"
    assert refused(history.give(Cancel("no"))) == "terminal"


def test_the_result_of_a_step_that_runs_on_after_the_end_is_stale() -> None:
    """A late result is refused and never stored; the first stop wins."""
    history = pipeline("classifying")
    context = history.action("context").id
    history.signal("Blocked")
    assert refused(history.apply(Completed(context, (output("Context"),)))[0]) == "stale"


def test_the_stop_event_is_the_result_of_the_run() -> None:
    history = History(CHAIN)
    history.start()
    for name, event in (("one", "A"), ("two", "B"), ("three", "Done")):
        history.complete(name, event)
    assert (history.it.outcome, history.it.state) == ("completed", "completed")
    assert history.it.event(history.it.result or "").event == "Done"


def test_five_steps_take_six_commits() -> None:
    """The end of a step, the transition and the beginning of the next are one commit."""
    history = pipeline("draft_ready")
    assert len(history.stored) == 6


def test_a_persons_word_that_no_row_takes_now_is_refused() -> None:
    """Even when a step would take the event: the table knows the word, and not in this state."""
    history = pipeline("drafting")
    assert refused(history.signal("Approved", person=True)) == "illegal_edge"
    assert refused(history.signal("Answered", person=True)) == "illegal_edge"
    assert accepted(history.signal("Answered"))


def test_a_word_that_the_table_does_not_know_goes_to_the_step_that_takes_it() -> None:
    definition = build(
        "t", (step("s", takes("Go")), step("reply", takes("Answer"))), {"Go": "start", "Answer": "external"}
    )
    history = History(definition)
    history.start()
    assert accepted(history.signal("Answer", person=True))
    assert "reply" in history.running()


def test_only_external_events_come_from_outside() -> None:
    history = pipeline("security_check")
    assert refused(history.give(Signal(output("Clean")))) == "invalid_input"


def test_a_request_is_answered_once() -> None:
    history = pipeline("drafting")
    assert accepted(history.give(Signal(output("Marked"), request="1.1")))
    assert refused(history.give(Signal(output("Marked"), request="1.1"))) == "already_decided"
    assert refused(history.give(Signal(output("Marked"), request="9.9"))) == "unknown_request"


def test_a_state_does_not_lead_to_itself_but_failed_does() -> None:
    table = Table(
        initial="a",
        states=frozenset({"a", "b", FAILED}),
        terminal=frozenset({"b"}),
        rows=(Row("back", "*", "X", "a"), Row("F", "*", "StepFailed", FAILED), Row("mark", "a", "X", None)),
    )
    definition = build("t", (step("s", takes("Go"), gives="X"), step("t", takes("Go"))), {"Go": "start"}, table)
    history = History(definition)
    history.start()
    history.complete("s", "X")
    assert [ev.row for ev in history.last if isinstance(ev, e.FieldsSet)] == ["mark"]
    assert refused(history.give(Move("a"))) == "illegal_edge"
    assert accepted(history.give(Move(FAILED)))
    history.fail("t")
    assert [ev.to_state for ev in history.events if isinstance(ev, e.Transitioned)] == [FAILED, FAILED]


@pytest.mark.parametrize("start", sorted(PIPELINE_TABLE.states))
def test_a_direct_call_takes_the_legal_edges_and_no_others(start: str) -> None:
    """Guards aside, a move is accepted exactly where a row leads."""
    rows = PIPELINE_TABLE.rows
    for target in sorted(PIPELINE_TABLE.states):
        history = History(PIPELINE)
        history.start("Mail")
        history.it.state = start
        legal = start not in PIPELINE_TABLE.terminal and any(
            r.next == target and r.state in (start, "*") and (start != target or start == FAILED) for r in rows
        )
        decision = history.decide(history.command(Move(target)))
        assert accepted(decision.outcomes[0]) == legal, f"{start} to {target}"


def test_a_state_that_does_not_exist_is_named_in_the_refusal() -> None:
    history = pipeline("drafting")
    assert refused(history.give(Move("nowhere"))) == "invalid_input"


def test_a_second_start_finds_the_run_and_other_content_is_told_apart() -> None:
    history = History(PIPELINE)
    history.give(Start(output("Mail"), content="d1"))
    assert history.give(Start(output("Mail"), content="d1")) == history.give(Start(output("Mail")))
    assert refused(history.give(Start(output("Mail"), content="d2"))) == "message_id_reused"
    assert len(history.stored) == 1


def test_a_cancel_takes_the_tables_row_or_ends_the_run_where_it_stands() -> None:
    history = History(CHAIN)
    history.start()
    history.give(Cancel("enough"))
    assert (history.it.state, history.it.outcome, history.running()) == ("cancelled", "cancelled", [])
    mail = pipeline("drafting")
    mail.give(Cancel("enough"))
    assert (mail.it.state, mail.it.outcome) == ("drafting", "cancelled")


def test_a_command_that_came_too_late_is_refused_as_expired() -> None:
    history = pipeline("drafting")
    assert refused(history.give(Cancel("x"), expires_at=history.now - 1)) == "expired"
    assert accepted(history.give(Cancel("x"), expires_at=history.now))


def test_a_command_for_one_version_is_refused_at_another() -> None:
    """Also when the version changed by a command decided in the same commit."""
    history = pipeline("drafting")
    version = history.it.version
    assert refused(history.signal("Marked", if_version=version - 1)) == "stale"
    first, second = (history.command(Signal(output("Marked")), id=name, if_version=version) for name in ("a", "b"))
    outcomes = history.apply(first, second)
    assert [refused(o) for o in outcomes] == [None, "stale"]


def test_a_command_before_any_start_finds_no_run() -> None:
    history = History(CHAIN)
    assert refused(history.give(Cancel("x"))) == "message_not_found"
    assert refused(history.apply(Completed("1.1", ()))[0]) == "message_not_found"
    assert history.stored == []
