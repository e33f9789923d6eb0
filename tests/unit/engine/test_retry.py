"""Failures and retries: attempts of the same execution, on a grid, with a limit (DESIGN 4, "Retry")."""

import pytest
from tests.unit.engine.definitions import CHAIN, FORK, PIPELINE, build, step, takes
from tests.unit.engine.history import T0, History, accepted, output, refused

from waybook.engine.definition import FIVE_MINUTES_MS, RetryPolicy, Row, Table
from waybook.engine.inputs import Cancel, Completed, Failed, Move, Nothing, Retry, Signal
from waybook.engine.retry import next_due
from waybook.events import engine as e


def chain(*done: str) -> History:
    history = History(CHAIN)
    history.start()
    for name in done:
        history.complete(name, {"one": "A", "two": "B", "three": "Done"}[name])
    return history


def fork() -> History:
    history = History(FORK)
    history.start()
    return history


def types(history: History) -> list[str]:
    return [type(event).__name__ for event in history.last]


def exhaust(history: History, name: str) -> None:
    """Fails a step and its automatic retries until none is left."""
    history.fail(name)
    while not history.action(name).exhausted:
        history.fire(history.timers()[0])
        history.fail(name)


@pytest.mark.parametrize(
    ("now", "not_before", "due"),
    [
        (T0, None, T0 + FIVE_MINUTES_MS),
        (T0 + 1, None, T0 + FIVE_MINUTES_MS),
        (T0 + FIVE_MINUTES_MS - 1, None, T0 + FIVE_MINUTES_MS),
        (T0 + 1, T0 + 5, T0 + FIVE_MINUTES_MS),
        (T0 + 1, T0 + FIVE_MINUTES_MS + 7, T0 + FIVE_MINUTES_MS + 7),
    ],
)
def test_a_retry_is_due_at_the_next_point_of_the_grid_unless_a_later_time_was_named(
    now: int, not_before: int | None, due: int
) -> None:
    assert next_due(now, FIVE_MINUTES_MS, not_before) == due


def test_a_failure_its_transition_and_its_retry_are_one_commit() -> None:
    history = chain("one")
    history.fail("two")
    assert types(history) == ["StepFailed", "Transitioned", "TimerArmed", "RetryScheduled"]
    scheduled = history.last[3]
    assert isinstance(scheduled, e.RetryScheduled)
    assert (scheduled.attempt, scheduled.timer, scheduled.due) == (2, history.timers()[0], T0 + FIVE_MINUTES_MS)


def test_a_retry_is_a_new_attempt_of_the_same_execution_with_the_same_events() -> None:
    history = chain("one")
    first = history.action("two")
    history.fail("two")
    history.fire(history.timers()[0])
    second = history.action("two")
    assert (second.execution, second.bindings, second.attempt) == (first.execution, first.bindings, 2)
    assert history.it.state == "running"


def test_a_retry_reuses_completed_steps_and_publishes_nothing() -> None:
    history = chain("one")
    history.fail("two")
    history.fire(history.timers()[0])
    assert types(history) == ["TimerFired", "Transitioned", "StepReused", "StepBegan"]


def test_the_third_failure_is_the_last_and_leaves_the_run_to_a_person() -> None:
    """The action stays `failed`, marked exhausted; nothing is scheduled any more."""
    history = chain()
    exhaust(history, "one")
    assert (history.action("one").status, history.action("one").failures) == ("failed", 3)
    assert (history.it.state, history.timers()) == ("failed", [])


def test_failures_are_counted_by_step_over_all_its_attempts() -> None:
    """Two executions of one step share the count; what fails side by side, in an outage say, is one failure of it."""
    definition = build("t", (step("source", takes("Go"), gives="A"), step("s", takes("A"))), {"Go": "start"})
    history = History(definition)
    history.start()
    history.complete("source", "A", "A")
    history.fail("s")
    first = next(a for a in history.it.actions.values() if a.step == "s" and a.status == "running")
    history.apply(Failed(first.id, e.Failure("Boom", "again")))
    assert history.it.failures == {"s": 1}
    history.give(Retry())
    history.fail("s")
    assert history.it.failures == {"s": 2}
    other = next(a for a in history.it.actions.values() if a.status == "running")
    history.apply(Completed(other.id, ()))
    history.fire(history.timers()[0])
    history.fail("s")
    assert (history.it.failures, history.action("s").exhausted) == ({"s": 3}, True)


def test_what_cannot_be_helped_by_trying_again_fails_once() -> None:
    history = chain()
    history.fail("one", retryable=False)
    assert (history.action("one").exhausted, history.timers()) == (True, [])


def test_a_step_may_have_its_own_limit() -> None:
    definition = build("t", (step("s", takes("Go"), retry=RetryPolicy(max_failures=1)),), {"Go": "start"})
    history = History(definition)
    history.start()
    history.fail("s")
    assert history.action("s").exhausted


def test_a_person_may_try_an_exhausted_step_again() -> None:
    history = chain("one")
    exhaust(history, "two")
    assert accepted(history.give(Retry()))
    assert (history.it.state, history.action("two").attempt) == ("running", 4)
    history.fail("two")
    assert history.action("two").exhausted, "its count is kept"


def test_only_a_failed_run_is_tried_again_by_a_person() -> None:
    history = chain()
    assert refused(history.give(Retry())) == "illegal_edge"


def test_a_person_who_retries_early_makes_the_timer_needless() -> None:
    """The pending timer is cancelled; its late fire finds it resolved and moves nothing."""
    history = chain()
    history.fail("one")
    timer = history.timers()[0]
    history.give(Retry())
    assert history.timers() == []
    history.fail("one")
    assert history.fire(timer) == Nothing("resolved")
    assert history.it.state == "failed"


def test_a_fire_is_accepted_once_and_an_unknown_one_is_kept() -> None:
    history = chain()
    history.fail("one")
    timer = history.timers()[0]
    assert accepted(history.fire(timer))
    assert history.fire(timer) == Nothing("resolved")
    assert history.fire("77.0") == Nothing("unknown_timer")


def test_a_fire_is_never_compared_with_a_clock() -> None:
    history = chain()
    history.fail("one")
    history.now = T0 - 1_000_000
    assert accepted(history.fire(history.timers()[0]))


def test_what_runs_when_the_run_fails_finishes_and_nothing_new_begins() -> None:
    history = fork()
    history.fail("left")
    assert history.running() == ["right"]
    assert accepted(history.complete("right", "R"))
    assert accepted(history.signal("Answer"))
    assert history.running() == []


def test_a_retry_takes_up_what_came_due_while_the_run_was_failed() -> None:
    """The branch alone runs again; the join begins when it ends, with the result that came meanwhile."""
    history = fork()
    history.fail("left")
    history.complete("right", "R")
    history.signal("Answer")
    history.fire(history.timers()[0])
    assert history.running() == ["left"]
    history.complete("left", "L")
    assert history.running() == ["join"]


def test_a_retry_begins_what_became_due_while_failed_even_without_the_failed_step() -> None:
    definition = build(
        "t", (step("bad", takes("Go")), step("good", takes("Go"), gives="A"), step("next", takes("A"))), {"Go": "start"}
    )
    history = History(definition)
    history.start()
    history.fail("bad")
    history.complete("good", "A")
    assert history.running() == []
    history.fire(history.timers()[0])
    assert sorted(history.running()) == ["bad", "next"]


def test_each_failed_branch_waits_for_its_own_timer() -> None:
    history = fork()
    history.apply(Failed(history.action("left").id, e.Failure("Wait", "busy"), not_before=T0 + 900_000))
    history.fail("right")
    late, early = history.timers()
    history.fire(early)
    assert history.running() == ["right"]
    history.fire(late)
    assert sorted(history.running()) == ["left", "right"]


def test_the_timer_of_one_branch_does_not_move_a_run_whose_other_branch_is_exhausted() -> None:
    """Such a run stays failed for a person, whose retry begins both."""
    history = fork()
    history.fail("left", retryable=False)
    history.fail("right")
    history.fire(history.timers()[0])
    assert (history.it.state, history.running()) == ("failed", [])
    history.give(Retry())
    assert sorted(history.running()) == ["left", "right"]


def test_what_lost_its_worker_while_the_run_was_failed_is_tried_again_too() -> None:
    history = fork()
    history.fail("left")
    history.again("k1")
    assert (history.action("right").status, history.running()) == ("abandoned", [])
    history.fire(history.timers()[0])
    assert sorted(history.running()) == ["left", "right"]


def test_a_stop_that_came_while_failed_ends_the_run_at_the_retry_and_nothing_begins() -> None:
    definition = build("t", (step("bad", takes("Go")), step("end", takes("Go"), gives="Done")),
                       {"Go": "start", "Done": "stop"})  # fmt: skip
    history = History(definition)
    history.start()
    history.fail("bad")
    history.complete("end", "Done")
    assert history.it.state == "failed"
    history.fire(history.timers()[0])
    assert history.it.outcome == "completed"
    assert "StepBegan" not in types(history)


def test_a_failure_that_does_not_stop_the_run_is_recorded_and_never_tried_again() -> None:
    """Also not when the run fails for another reason and a person retries it."""
    definition = build(
        "t", (step("careless", takes("Go"), stop_on_error=False), step("s", takes("Go"))), {"Go": "start"}
    )
    history = History(definition)
    history.start()
    history.fail("careless")
    assert (history.it.state, history.timers(), history.action("careless").exhausted) == ("running", [], True)
    history.fail("s", retryable=False)
    history.give(Retry())
    assert history.running() == ["s"]


def drafting() -> History:
    history = History(PIPELINE)
    history.start("Mail")
    for name, event in (("scan", "Clean"), ("context", "Context"), ("classify", "Classified")):
        history.complete(name, event)
    assert history.it.state == "drafting"
    return history


def test_the_way_back_is_one_commit_of_the_recorded_transitions() -> None:
    """failed, received, security_check, classifying, drafting: guards are not asked again, completed steps reused."""
    history = drafting()
    history.fail("draft")
    history.fire(history.timers()[0])
    moved = [ev.to_state for ev in history.last if isinstance(ev, e.Transitioned)]
    assert moved == ["received", "security_check", "classifying", "drafting"]
    reused = [history.it.actions[ev.action].step for ev in history.last if isinstance(ev, e.StepReused)]
    assert reused == ["scan", "context", "classify"]
    assert history.running() == ["draft"]


def test_a_second_retry_goes_the_same_way() -> None:
    history = drafting()
    for attempt in (2, 3):
        history.fail("draft")
        history.fire(history.timers()[0])
        assert (history.it.state, history.action("draft").attempt) == ("drafting", attempt)


def test_a_retry_of_the_first_step_asks_the_tables_own_row_every_time() -> None:
    """Its fields are written again: the error text is cleared."""
    history = History(PIPELINE)
    history.start("Mail")
    for _ in range(2):
        history.fail("scan")
        assert history.it.fields["error_message"] == "scan went wrong"
        history.fire(history.timers()[0])
        assert history.it.fields["error_message"] is None
        assert history.it.state == "security_check"


def test_a_run_that_a_person_led_out_of_failed_is_retried_from_there() -> None:
    """The way back never takes an edge that the table does not have."""
    history = drafting()
    history.fail("draft", retryable=False)
    history.give(Signal(output("Approved")))
    assert (history.it.state, history.running()) == ("approved", ["send"])
    history.complete("send", "Bounced")
    assert history.it.state == "failed"
    history.give(Retry())
    assert [ev.row for ev in history.last if isinstance(ev, e.Transitioned)] == ["E24"]
    assert history.it.state == "approved"


def test_a_table_without_a_way_back_refuses_the_retry() -> None:
    definition = build("t", (step("s", takes("Go")),), {"Go": "start"})
    table = definition.table
    rows = tuple(r for r in table.rows if r.on != "RetryRequested")
    history = History(build("t", (step("s", takes("Go")),), {"Go": "start"}, type(table)(
        initial=table.initial, states=table.states, terminal=table.terminal, rows=rows
    )))  # fmt: skip
    history.start()
    history.fail("s")
    assert refused(history.give(Retry())) == "illegal_edge"
    assert accepted(history.fire(history.timers()[0]))
    assert history.it.state == "failed"


def test_closing_a_failed_run_cancels_its_retries() -> None:
    history = chain()
    history.fail("one")
    history.give(Cancel("enough"))
    assert (history.it.retries, history.timers(), history.it.outcome) == ({}, [], "cancelled")


def test_a_result_that_comes_after_its_failure_is_stale() -> None:
    """A late end does not turn a failed attempt into a completed one."""
    history = chain()
    action = history.action("one").id
    history.fail("one")
    assert refused(history.apply(Completed(action, (output("A"),)))[0]) == "stale"


def test_a_step_that_fails_in_a_run_already_failed_keeps_its_retry() -> None:
    history = fork()
    history.give(Move("failed"))
    history.fail("left")
    assert (history.visited(), len(history.timers())) == (["failed"], 1)


def test_what_came_while_failed_is_taken_up_once() -> None:
    """A row that a retry applied to it is not applied again by the next retry."""
    history = History(PIPELINE)
    history.start("Mail")
    history.complete("scan", "Clean")
    history.complete("context", "Context")
    history.give(Move("failed"))
    assert accepted(history.complete("classify", output("Classified", mark=1)))
    assert history.it.state == "failed"
    history.give(Retry())
    assert (history.it.state, history.it.unhandled) == ("drafting", [])
    history.fail("draft")
    history.give(Retry())
    assert history.visited().count("drafting") == 2, "the second time as a recorded transition only"


def test_an_attempt_that_began_waits_no_longer() -> None:
    history = chain()
    history.fail("one")
    assert [r.attempt for r in history.it.retries.values()] == [2]
    history.fire(history.timers()[0])
    assert history.it.retries == {}


def test_a_table_with_a_persons_way_out_only_is_retried_along_it() -> None:
    rows = (
        Row("F", "*", "StepFailed", "failed"),
        Row("person", "failed", "Again", "second"),
    )
    table = Table("first", frozenset({"first", "second", "failed"}), frozenset(), rows)
    definition = build("t", (step("s", takes("Go|Again")),), {"Go": "start", "Again": "external"}, table)
    history = History(definition)
    history.start()
    history.fail("s", retryable=False)
    assert refused(history.give(Retry())) == "illegal_edge"
    history.signal("Again")
    history.fail("s", retryable=False)
    assert accepted(history.give(Retry()))
    assert history.it.state == "second"
