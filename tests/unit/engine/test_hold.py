"""Why a run is not moving, and its next move (`hold`, `why`)."""

from tests.unit.engine.definitions import CHAIN, FORK, PIPELINE, WIDE, build, step, takes
from tests.unit.engine.history import T0, History

from waybook.engine.definition import RetryPolicy
from waybook.engine.hold import Hold, PassedOver, hold, why
from waybook.engine.inputs import Cancel, Move, Retry, World
from waybook.engine.times import iso


def asked(history: History) -> Hold:
    return hold(history.definition, history.it)


def test_a_run_under_way_has_no_hold_and_names_what_runs() -> None:
    history = History(CHAIN)
    history.start()
    assert asked(history).kind == "none"
    assert why(CHAIN, history.it).next_move == "running one (attempt 1)"


def test_a_failed_run_says_when_it_is_tried_again_and_that_nobody_will_wake_it() -> None:
    history = History(CHAIN)
    history.start()
    history.fail("one")
    assert (asked(history).kind, asked(history).until) == ("retry", T0 + 300_000)
    assert why(CHAIN, history.it).next_move == f"retry due {iso(T0 + 300_000)}, no scheduler"
    assert why(CHAIN, history.it, scheduler=True).next_move == f"retry due {iso(T0 + 300_000)}"
    assert why(CHAIN, history.it).error == "one: one went wrong"


def test_an_exhausted_run_waits_for_a_person() -> None:
    history = History(CHAIN)
    history.start()
    history.fail("one", retryable=False)
    assert (asked(history).kind, asked(history).reason) == ("waiting", "exhausted")


def test_an_exhausted_branch_outweighs_the_retry_of_another() -> None:
    history = History(FORK)
    history.start()
    history.fail("left", retryable=False)
    history.fail("right")
    assert asked(history).reason == "exhausted"


def test_a_command_that_killed_its_workers_is_named_until_a_person_retries() -> None:
    history = History(build("t", (step("s", takes("Go"), retry=RetryPolicy(1)),), {"Go": "start"}))
    history.start()
    history.again("k1")
    assert asked(history).kind == "dead command"
    history.give(Retry())
    assert asked(history).kind == "none"


def test_a_parked_state_says_what_it_waits_for() -> None:
    history = History(PIPELINE)
    history.start("Mail")
    history.complete("scan", "Threat")
    assert (asked(history).kind, asked(history).reason) == ("waiting", "release")


def test_a_run_that_lacks_inputs_names_them_step_by_step() -> None:
    history = History(FORK)
    history.start()
    history.complete("left", "L")
    history.complete("right", "R")
    assert why(FORK, history.it).missing == {"join": ("Answer",)}


def test_a_limit_that_was_reached_is_named() -> None:
    history = History(WIDE)
    history.start()
    history.complete("split", "A", "B")
    for _ in range(2):
        history.complete("either", "C")
    assert why(WIDE, history.it).limits == ()
    history.complete("gather", "E", "E")
    assert why(WIDE, history.it).limits == ("limited",)


def test_offers_and_released_steps_say_who_moves_next() -> None:
    history = History(CHAIN)
    history.start()
    history.complete("one", "A", world=World(free_slots=0))
    assert why(CHAIN, history.it).next_move == "offered to a worker: two"
    other = History(CHAIN)
    other.start()
    other.release("one")
    assert why(CHAIN, other.it).next_move == "a redelivery of its command takes up the released steps"


def test_an_ended_run_has_no_hold_and_no_missing_inputs() -> None:
    history = History(FORK)
    history.start()
    history.give(Cancel("enough"))
    assert asked(history).kind == "none"
    assert (why(FORK, history.it).next_move, why(FORK, history.it).missing) == (
        "none: the run has ended as cancelled (cancelled by engine: enough)", {}
    )  # fmt: skip


def test_a_run_moved_to_failed_by_hand_waits_for_a_person() -> None:
    history = History(CHAIN)
    history.start()
    history.complete("one")
    history.give(Move("failed"))
    assert asked(history).reason == "exhausted"


def test_a_retry_whose_timer_has_fired_in_vain_is_no_longer_announced() -> None:
    """Another branch was exhausted, so the fire moved nothing: a person has to act."""
    history = History(FORK)
    history.start()
    history.fail("left")
    history.fail("right", retryable=False)
    history.fire(history.timers()[0])
    assert asked(history).reason == "exhausted"
    assert list(history.it.retries), "the attempt still waits"


def test_a_fixed_list_says_how_many_of_its_events_are_there() -> None:
    """Also when there is one too many, so that it never runs any more."""
    definition = build(
        "t",
        (
            step("source", takes("Go"), gives="R"),
            step("join", takes("R", kind="fixed_list", size=3), takes("N")),
        ),
        {"Go": "start", "N": "external", "R": "external"},
    )
    history = History(definition)
    history.start()
    history.complete("source", "R", "R")
    assert why(definition, history.it).missing == {"join": ("R (2 of 3)", "N")}
    assert "join waits for R (2 of 3) and N" in why(definition, history.it).next_move
    history.signal("R")
    assert why(definition, history.it).missing == {"join": ("N",)}
    history.signal("R")
    assert why(definition, history.it).missing == {"join": ("R (4, never 3 again)", "N")}


def test_a_failure_that_did_not_stop_its_run_is_named_for_as_long_as_the_run_is_there() -> None:
    """It went on without the result, so who looks for that has to find the error, also after the end."""
    steps = (step("careless", takes("Go"), stop_on_error=False), step("s", takes("Go"), gives="Done"))
    history = History(build("t", steps, {"Go": "start", "Done": "stop"}))
    history.start()
    assert why(history.definition, history.it).passed_over == ()
    history.fail("careless")
    [failure] = why(history.definition, history.it).passed_over
    trigger = history.action("careless").trigger
    assert failure == PassedOver("careless", trigger, 1, "Boom", "careless went wrong")
    assert why(history.definition, history.it).error is None
    history.complete("s", "Done")
    assert history.it.ended
    assert why(history.definition, history.it).passed_over == (failure,)
