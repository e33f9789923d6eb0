"""No side effect twice and none forgotten, over thousands of interleavings of two workers and the other side."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.effects.workers import Effects, Rules

KINDS = 11 * 2 * 10  # move, worker, and what the move does
NUMBERS = st.lists(st.integers(0, KINDS - 1), min_size=1, max_size=40)
QUICK = settings(max_examples=600, deadline=None)


def play(moves: list[int], rules: Rules, *, authoritative: bool) -> None:
    effects = Effects(rules, authoritative=authoritative)
    for number in moves:
        effects.move(number)
        effects.check()
    effects.drain()
    effects.check()
    effects.check_end()


@QUICK
@given(NUMBERS)
def test_with_an_other_side_that_surely_knows_every_effect_is_made_once_and_known(moves: list[int]) -> None:
    """Whatever dies, pauses, answers late or not at all."""
    play(moves, Rules(), authoritative=True)


@QUICK
@given(NUMBERS)
def test_with_one_that_does_not_know_none_is_made_twice_and_the_unknown_goes_to_a_person(moves: list[int]) -> None:
    play(moves, Rules(), authoritative=False)


OFF = {
    "checks_the_deadline": True,
    "waits_before_absent_counts": True,
    "believes_authoritative_finds_only": False,
    "key_without_parameters": True,
    "reconciles_first": True,
    "stores_late_outcomes": False,
}


@pytest.mark.parametrize("rule", OFF)
def test_the_model_finds_what_each_rule_prevents(rule: str) -> None:
    """A model that finds nothing without a rule would say nothing about the rule."""

    dice = random.Random(rule)

    def played_often() -> None:
        for _ in range(2000):
            moves = [dice.randrange(KINDS) for _ in range(dice.randrange(5, 30))]
            play(moves, Rules(**{rule: False}), authoritative=OFF[rule])

    with pytest.raises(
        AssertionError, match="a worker was told" if rule == "stores_late_outcomes" else r"made \d times"
    ):
        played_often()
