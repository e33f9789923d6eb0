"""Walks: a true restart runs every step again and keeps what came before in the history (DESIGN 4, "Retry")."""

from tests.unit.engine.definitions import PIPELINE, build, step, takes
from tests.unit.engine.history import History, output

from waybook.engine.definition import Row, Table
from waybook.engine.hold import why
from waybook.engine.inputs import Accepted, Completed, Move, Refused, Restart, Retry, Signal
from waybook.engine.run import NO_PERSON, Run
from waybook.events import engine as e

RESTARTED = build(
    "t",
    (step("s", takes("Go"), gives="A"), step("t", takes("A")), step("u", takes("A"), takes("Again"))),
    {"Go": "start", "Again": "external"},
    Table(
        initial="running",
        states=frozenset({"running", "failed"}),
        terminal=frozenset(),
        rows=(
            Row("F", "*", "StepFailed", "failed"),
            Row("retry", "failed", "RetryRequested", "running"),
            Row("again", "failed", "Again", "running", restart=True),
        ),
    ),
)
"""A person restarts a failed run."""


def quarantined() -> History:
    history = History(PIPELINE)
    history.start("Mail")
    history.complete("scan", "Threat")
    return history


def restarted() -> History:
    """Walk 1: `s` completed, `t` failed twice. Then a person restarts it."""
    history = History(RESTARTED)
    history.start()
    history.complete("s", "A")
    history.fail("t")
    history.fire(history.timers()[0])
    history.fail("t")
    history.give(Signal(output("Again")), id="again", person=True)
    return history


def walks(run: Run) -> list[tuple[str, int]]:
    return [(a.step, a.walk) for a in run.actions.values()]


def test_a_release_walks_the_mail_again_from_the_first_step() -> None:
    """The start event is put before the table again: received, security_check, and the scan begins anew."""
    history = quarantined()
    history.signal("Released", person=True)
    assert history.visited()[-2:] == ["received", "security_check"]
    assert (history.it.walk, history.running(), history.action("scan").attempt) == (2, ["scan"], 1)


def test_the_second_walk_can_take_another_way_than_the_first() -> None:
    history = quarantined()
    history.signal("Released", person=True)
    history.complete("scan", "Clean")
    assert (history.it.state, history.running()) == ("classifying", ["context"])


def test_a_new_walk_sees_the_start_event_and_events_from_outside_but_no_results_of_before() -> None:
    history = restarted()
    assert history.running() == ["s"], "t and u wait for a new A"
    history.complete("s", "A")
    assert sorted(history.running()) == ["t", "u"]
    bound = history.action("t").bindings["a"]
    assert isinstance(bound, str)
    assert history.it.event(bound).walk == 2


def test_a_restart_cancels_what_waited_and_a_person_resets_the_count_of_failures() -> None:
    history = restarted()
    assert (history.timers(), history.it.retries, history.it.failures) == ([], {}, {})
    began = next(event for event in history.last if isinstance(event, e.WalkStarted))
    assert (began.n, began.keep, began.token, began.by) == (2, (), "again", "p")


def test_a_restart_by_the_engine_keeps_the_count_of_failures() -> None:
    history = History(RESTARTED)
    history.start()
    history.complete("s", "A")
    history.fail("t")
    history.signal("Again")
    began = next(event for event in history.last if isinstance(event, e.WalkStarted))
    assert (began.by, history.it.failures) == (NO_PERSON, {"t": 1})


def test_what_ran_in_the_earlier_walk_is_abandoned_without_a_failure_and_its_result_is_stale() -> None:
    slow = History(RESTARTED)
    slow.start()
    running = slow.action("s").id
    slow.give(Move("failed"))
    slow.signal("Again", person=True)
    assert slow.it.actions[running].status == "abandoned"
    assert slow.it.failures == {}
    outcome = slow.apply(Completed(running, (output("A"),)))[0]
    assert getattr(outcome, "reason", None) == "stale"


def test_a_retry_stays_in_its_walk() -> None:
    """It goes the way of the second walk and reuses only what that walk completed."""
    history = quarantined()
    history.signal("Released", person=True)
    history.complete("scan", "Clean")
    history.fail("context")
    history.give(Retry())
    reused = [history.it.actions[ev.action] for ev in history.last if isinstance(ev, e.StepReused)]
    assert [(a.step, a.walk) for a in reused] == [("scan", 2)]
    assert (history.it.walk, history.it.state, history.running()) == (2, "classifying", ["context"])


KEEPING = build(
    "t",
    (step("s", takes("Go"), gives="A"), step("t", takes("A"), gives="B"), step("u", takes("B"))),
    {"Go": "start", "Again": "external"},
    Table(
        initial="running",
        states=frozenset({"running", "again", "failed"}),
        terminal=frozenset(),
        rows=(
            Row("F", "*", "StepFailed", "failed"),
            Row(
                "again",
                "running",
                "Again",
                "again",
                restart=True,
                keeps=lambda run, event: [a.id for a in run.actions.values() if a.step != "t"],
            ),
        ),
    ),
)
"""A person wants `t` done again."""


def test_a_row_names_what_stands_in_the_walk_that_it_begins() -> None:
    """The kept step's result is bound again, and nothing that is kept runs again."""
    history = History(KEEPING)
    history.start()
    history.complete("s", "A")
    history.complete("t", "B")
    history.signal("Again", person=True)
    assert walks(history.it) == [("s", 1), ("t", 1), ("u", 1), ("t", 2)]
    assert history.action("t").bindings == {"a": "2.1"}
    assert history.it.actions[history.action("u").id].status == "abandoned", "what was under way is never kept"
    (walk,) = [event for event in history.last if isinstance(event, e.WalkStarted)]
    assert walk.keep == (history.action("s").id,), "and is not named among what is"
    history.complete("t", "B")
    assert walks(history.it)[-1] == ("u", 2)


def test_the_history_of_the_earlier_walk_stays() -> None:
    history = restarted()
    assert walks(history.it) == [("s", 1), ("t", 1), ("t", 1), ("s", 2)]
    assert why(RESTARTED, history.it).running == ("s",)
    assert [commit.walk for commit, _, _ in history.stored][-1] == 2


def test_a_person_restarts_a_failed_run_and_keeps_what_is_to_stand() -> None:
    """The run leaves `failed` by its table's row, and every step that is not kept runs again."""
    history = History(build("t", (step("a", takes("Go"), gives="A"), step("b", takes("A"))), {"Go": "start"}))
    history.start()
    history.complete("a", "A")
    history.fail("b")
    kept = history.action("a").id
    accepted = history.give(Restart((kept,)), id="restart", person=True)
    assert isinstance(accepted, Accepted)
    assert (history.it.state, history.it.walk, history.running()) == ("running", 2, ["b"])
    history.give(Restart(), id="again", person=True)
    assert (history.it.walk, history.running()) == (3, ["a"])


def test_a_lifecycle_without_a_row_for_it_refuses_a_restart() -> None:
    """Where a run may go is its table's to say."""
    history = quarantined()
    refused = history.give(Restart(), id="restart", person=True)
    assert isinstance(refused, Refused)
    assert refused.reason == "illegal_edge"
