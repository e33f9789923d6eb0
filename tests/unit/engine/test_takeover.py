"""A person takes a run over: nothing of it begins until it is handed back, and then nothing was lost."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine import laws, plays
from tests.unit.engine.definitions import ALL, CHAIN, FORK
from tests.unit.engine.history import History, accepted, output, refused

from waybook.engine.decide import NOBODY
from waybook.engine.definition import Definition
from waybook.engine.hold import hold
from waybook.engine.inputs import Continue, HandBack, Input, Outcome, Retry, Signal, TakeOver
from waybook.events import engine as e


def take_over(history: History, **options: Any) -> Outcome:
    return history.give(TakeOver("by phone"), **{"person": True, "by": "ann", **options})


def hand_back(history: History, **options: Any) -> Outcome:
    return history.give(HandBack(), **{"person": True, "by": "ann", **options})


def test_what_runs_is_broken_off_and_its_result_is_late() -> None:
    """The run says who has it; a late result of the broken off attempt is refused."""
    history = History(CHAIN)
    history.start()
    action = history.action("one").id
    assert accepted(take_over(history))
    assert history.running() == []
    assert history.it.actions[action].status == "abandoned" and history.it.failures == {}
    held = hold(history.definition, history.it)
    assert (held.kind, held.reason) == ("waiting", "taken_over") and "ann" in held.text
    assert refused(history.complete("one", "A")) == "stale"


def test_handed_back_the_run_goes_on_where_it_was() -> None:
    """The same execution gets its next attempt; a failure that waited for its retry, too."""
    history = History(CHAIN)
    history.start()
    history.complete("one", "A")
    history.fail("two")
    (timer,) = history.timers()
    take_over(history)
    assert history.timers() == [] and refused(history.give(Retry(), person=True)) == "taken_over"
    assert getattr(history.fire(timer), "reason", "") == "resolved"
    assert accepted(hand_back(history))
    assert history.running() == ["two"] and history.action("two").attempt == 2
    history.complete("two", "B")
    history.complete("three", "Done")
    assert history.it.outcome == "completed"


def test_what_comes_meanwhile_is_stored_and_begins_when_it_is_handed_back() -> None:
    history = History(FORK)
    history.start()
    history.complete("left", "L")
    history.complete("right", "R")
    take_over(history)
    history.give(Signal(output("Answer")))
    assert history.running() == [] and getattr(history.give(Continue()), "reason", "") == "nothing_due"
    hand_back(history)
    assert history.running() == ["join"]


def test_who_may_and_when() -> None:
    """Only people, once, and not after the end."""
    history = History(CHAIN)
    history.start()
    assert refused(hand_back(history)) == "not_taken_over"
    assert refused(take_over(history, person=False)) == "not_permitted"
    take_over(history)
    assert refused(take_over(history, by="bob")) == "taken_over"
    assert refused(hand_back(history, person=False)) == "not_permitted"
    hand_back(history)
    for step, event in (("one", "A"), ("two", "B"), ("three", "Done")):
        history.complete(step, event)
    assert refused(take_over(history)) == "terminal" and refused(hand_back(history)) == "terminal"


MOVES = st.lists(st.one_of(plays.draws(), st.sampled_from(["take", "back"])), min_size=1, max_size=25)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(ALL.values())), MOVES)
def test_nothing_begins_while_a_person_has_it(definition: Definition, moves: list[plays.Draw | str]) -> None:
    """In any order of moves; all laws of runs hold, and what was broken off goes on as the same execution."""
    history = History(definition)
    for move in moves:
        one = _meaning(history, move)
        if one is not None:
            before = history.run.taken_over if history.run is not None else None
            history.apply(one, world=plays.world_of(history, move) if isinstance(move, plays.Draw) else NOBODY)
            if before is not None and history.it.taken_over is not None:
                assert not any(isinstance(event, e.StepBegan | e.StepOffered) for event in history.last)
    laws.check(history)


def _meaning(history: History, move: plays.Draw | str) -> Input | None:
    if isinstance(move, plays.Draw) or history.run is None:
        return plays.meaning(history, move if isinstance(move, plays.Draw) else plays.Draw("start", 0, 0))
    return history.command(TakeOver() if move == "take" else HandBack(), person=True, by="ann")
