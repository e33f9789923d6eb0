"""Claims: who may run what, and what a delivery does to actions that began before it (DESIGN 4, "Claims")."""

from tests.unit.engine.definitions import CHAIN, FORK, build, step, takes
from tests.unit.engine.history import History, accepted, output

from waybook.engine.definition import RetryPolicy
from waybook.engine.inputs import Completed, Continue, Delivered, Nothing, Signal, Start, World
from waybook.events import engine as e
from waybook.events.engine import Claim


def chain() -> History:
    history = History(CHAIN)
    history.start()
    return history


def types(history: History) -> list[str]:
    return [type(event).__name__ for event in history.last]


def start(history: History, claim: Claim, held: Claim | None = None) -> Delivered:
    return history.command(Start(output("Go")), id="k1", claim=claim, held=held)


def test_what_a_commit_makes_due_begins_under_the_command_that_its_author_holds() -> None:
    """Rule 1: a result's next steps run under the command of the action that ended, a signal's under the signal."""
    history = History(FORK)
    history.start()
    history.complete("left", "L")
    history.complete("right", "R")
    history.signal("Answer", id="s", claim=Claim(9, 1, 1))
    assert (history.action("left").command, history.action("join").command) == ("k1", "s")
    assert history.action("join").claim == Claim(9, 1, 1)


def test_another_command_leaves_open_actions_alone() -> None:
    history = History(FORK)
    history.start()
    history.signal("Answer")
    assert history.running() == ["left", "right"]
    assert types(history) == ["EventPublished"]


def test_a_later_delivery_gives_open_actions_a_new_attempt() -> None:
    """Rule 3: the lost attempt is abandoned and counts as a failure of its step."""
    history = chain()
    history.again("k1")
    assert types(history) == ["ActionAbandoned", "StepBegan"]
    assert (history.action("one").attempt, history.it.failures) == (2, {"one": 1})


def test_claims_are_ordered_by_message_then_consumer_then_delivery() -> None:
    """The delivery count begins again with a new consumer, so the count alone would not do."""
    assert Claim(5, 1, 9) < Claim(5, 2, 1) < Claim(5, 2, 2) < Claim(6, 1, 1)


def test_the_delivery_after_a_new_consumer_takes_over() -> None:
    history = chain()
    history.again("k1", later=4)
    assert accepted(history.apply(start(history, Claim(1, 2, 1)))[0])
    assert history.action("one").attempt == 3


def test_an_earlier_delivery_is_superseded() -> None:
    history = chain()
    history.again("k1", later=2)
    assert history.again("k1", later=-1) == Nothing("superseded")


def test_the_result_of_a_superseded_attempt_is_stale() -> None:
    history = chain()
    lost = history.action("one").id
    history.again("k1")
    outcome = history.apply(Completed(lost, (output("A"),)))[0]
    assert getattr(outcome, "reason", None) == "stale"


def test_the_same_delivery_decided_again_finds_its_actions_held() -> None:
    """As after an append whose outcome was unknown."""
    history = chain()
    assert history.again("k1", later=0) == Nothing("held")


def test_a_command_without_open_actions_is_applied() -> None:
    history = chain()
    history.complete("one")
    assert history.again("k1") == Nothing("applied")


def test_a_second_delivery_to_the_process_that_walks_the_command_renews_its_claim() -> None:
    """Rule 5: no second walk; one commit gives all its actions the newer claim."""
    history = History(FORK)
    history.start()
    history.again("k1", held=Claim(1, 1, 1))
    assert types(history) == ["LeaseRenewed"]
    assert {a.claim for a in history.it.open_actions()} == {Claim(1, 1, 2)}
    assert history.it.failures == {}
    assert accepted(history.complete("left", "L")), "its running bodies go on"


def test_a_claim_held_says_nothing_about_actions_that_others_began_since() -> None:
    """The process was superseded without knowing, then got the newest delivery: it takes over like anyone."""
    history = chain()
    history.again("k1")
    history.apply(start(history, Claim(1, 1, 3), held=Claim(1, 1, 1)))
    assert types(history) == ["ActionAbandoned", "StepBegan"]


def test_two_deliveries_of_a_command_in_one_commit_walk_it_once() -> None:
    history = History(CHAIN)
    history.apply(start(history, Claim(1, 1, 1)), start(history, Claim(1, 1, 2)))
    assert types(history) == ["RunStarted", "EventPublished", "StepBegan", "LeaseRenewed"]


def test_a_result_and_a_renewal_in_one_commit_leave_the_next_step_with_the_newer_claim() -> None:
    history = chain()
    done = Completed(history.action("one").id, (output("A"),))
    history.apply(done, start(history, Claim(1, 1, 2), held=Claim(1, 1, 1)))
    assert (history.running(), history.action("two").claim) == (["two"], Claim(1, 1, 2))
    assert history.it.failures == {}


def test_a_command_sent_again_waits_while_the_first_message_is_in_the_queue() -> None:
    """It stands at another sequence: that alone does not say that the holder of the first was lost."""
    history = chain()
    assert history.apply(start(history, Claim(8, 1, 1)))[0] == Nothing("elsewhere")
    assert accepted(history.apply(start(history, Claim(8, 1, 2)), world=World(gone=frozenset({1})))[0])
    assert history.action("one").attempt == 2


def test_a_graceful_stop_gives_actions_back_without_a_failure() -> None:
    history = History(FORK)
    history.start()
    history.release("left", "right")
    assert types(history) == ["ActionReleased", "ActionReleased"]
    history.again("k1")
    assert (sorted(history.running()), history.it.failures) == (["left", "right"], {})


def test_a_released_action_whose_run_failed_meanwhile_is_closed_and_comes_back_with_the_retry() -> None:
    history = History(FORK)
    history.start()
    history.release("left")
    history.fail("right")
    history.again("k1")
    assert (history.action("left").status, history.running()) == ("abandoned", [])
    history.fire(history.timers()[0])
    assert sorted(history.running()) == ["left", "right"]


def test_continue_gives_actions_whose_command_is_gone_a_new_attempt() -> None:
    """Rule 7: an action whose command COMMANDS no longer holds has no owner."""
    history = chain()
    assert history.give(Continue()) == Nothing("nothing_due")
    assert accepted(history.give(Continue(), id="c", world=World(gone=frozenset({1}))))
    assert (history.action("one").attempt, history.action("one").command) == (2, "c")


def test_continue_does_nothing_for_a_run_that_waits() -> None:
    history = History(FORK)
    history.start()
    history.complete("left", "L")
    history.complete("right", "R")
    assert history.give(Continue()) == Nothing("nothing_due")


def killer(limit: int) -> History:
    history = History(build("t", (step("kills", takes("Go"), retry=RetryPolicy(limit)), step("other", takes("Go"))),
                            {"Go": "start"}))  # fmt: skip
    history.start()
    return history


def test_the_last_lost_worker_of_a_step_convicts_its_command() -> None:
    """Rule 9: one guarded commit abandons, convicts and fails the run; nothing begins."""
    history = killer(2)
    history.again("k1")
    history.complete("other")
    history.again("k1", later=2)
    assert types(history) == ["ActionAbandoned", "CommandConvicted", "Transitioned"]
    assert (history.it.state, history.running()) == ("failed", [])
    assert history.action("kills").exhausted


def test_a_conviction_is_told_to_every_later_delivery() -> None:
    """DEAD and term come after the commit and may be repeated."""
    history = killer(1)
    history.again("k1")
    assert history.again("k1", later=2) == Nothing("applied")
    assert list(history.it.convicted) == ["k1"]


def test_one_command_is_convicted_once_in_a_commit() -> None:
    history = History(build("t", (step("a", takes("Go"), retry=RetryPolicy(1)), step("b", takes("Go"),
                                  retry=RetryPolicy(1))), {"Go": "start"}))  # fmt: skip
    history.start()
    history.again("k1")
    assert types(history).count("CommandConvicted") == 1
    assert history.running() == []


def test_lost_workers_and_errors_share_one_count() -> None:
    history = chain()
    history.again("k1")
    history.fail("one")
    assert history.it.failures == {"one": 2}


def wide(pieces: int) -> History:
    """A run with so many executions of one step under way, all under one command."""
    history = History(
        build("t", (step("split", takes("Go"), gives="A"), step("work", takes("A"))), {"Go": "start", "A": "plain"})
    )
    history.start()
    history.complete("split", *["A"] * pieces)
    return history


def test_one_death_counts_once_however_many_executions_it_took_along() -> None:
    """A worker that dies with ten executions of a step is one failure of the step, not ten."""
    history = wide(10)
    history.again("k1", later=1)
    assert history.it.failures == {"work": 1}
    assert (len(history.running()), history.it.state) == (10, "running")
    history.again("k1", later=2)
    assert history.it.failures == {"work": 2}
    history.again("k1", later=3)
    assert history.it.failures == {"work": 3}
    assert history.it.state == "failed"
    assert list(history.it.convicted) == ["k1"]


def test_deaths_that_met_different_executions_of_a_step_do_not_add_up() -> None:
    """Each round of a loop may lose its worker once; none of them kills it again and again."""
    loop = build("t", (step("round", takes("Go|A"), gives="A"),), {"Go": "start", "A": "plain"})
    history = History(loop)
    history.start()
    for later in range(1, 6):
        history.again("k1", later=later)
        history.complete("round", "A")
    assert history.it.failures == {"round": 1}
    assert (len(history.running()), history.it.state) == (1, "running")


def test_a_signal_given_twice_in_one_commit_is_published_once() -> None:
    history = History(FORK)
    history.start()
    signal = history.command(Signal(output("Answer")), id="s", claim=Claim(9, 1, 1))
    outcomes = history.apply(signal, signal)
    assert outcomes[1] == Nothing("applied")
    assert [p.event for p in history.it.log].count("Answer") == 1


def test_a_commit_names_the_commands_that_it_applies() -> None:
    history = chain()
    history.signal("nothing")
    assert [commit.commands for commit, _, _ in history.stored] == [("k1",)]
    assert isinstance(history.events[0], e.RunStarted)
