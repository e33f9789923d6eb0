"""The short way of deciding: when it is taken, and that it comes to what the long way comes to.

`History.decide` holds every decision of these tests and of the random plays against the long way.
"""

from typing import Any

import msgspec
import pytest
from tests.unit.engine.definitions import ALL, CHAIN, PIPELINE, build, step, takes
from tests.unit.engine.history import History, output

from waybook.engine.definition import Definition, Row, Table
from waybook.engine.inputs import Accepted, Completed, Decision, World
from waybook.engine.onward import onward
from waybook.events import engine as e

WORLD = World()


def shortly(history: History, step: str, *events: str, world: World = WORLD) -> Decision | None:
    """What the short way makes of a result; None: it leaves it to the long way."""
    outputs = tuple(output(event) for event in events)
    result = Completed(history.action(step).id, outputs)
    history.decide(result, world=world)
    return onward(history.definition, history.key, history.it, result, history.now, world)


def started(definition: Definition, event: str) -> History:
    history = History(definition)
    history.start(event)
    return history


def test_a_plain_result_is_decided_the_short_way() -> None:
    """The end of a step, its event, the transition and the begin of the next step are one commit."""
    history = started(PIPELINE, "Mail")
    decision = shortly(history, "scan", "Clean")
    assert decision is not None
    kinds = [type(event) for event in decision.events]
    assert kinds == [e.StepCompleted, e.EventPublished, e.Transitioned, e.StepBegan]
    assert decision.outcomes == (Accepted(),)


def test_a_row_without_a_next_state_is_taken_the_short_way() -> None:
    """Only fields change, and every step that takes the event begins."""
    history = started(PIPELINE, "Mail")
    for name, event in (("scan", "Clean"), ("context", "Context"), ("classify", "Classified")):
        history.complete(name, event)
    decision = shortly(history, "draft", "Draft")
    assert decision is not None
    kinds = [type(event) for event in decision.events]
    assert kinds == [e.StepCompleted, e.EventPublished, e.FieldsSet, e.StepBegan, e.StepBegan]


@pytest.mark.parametrize(
    ("agent", "event", "step", "events"),
    [
        ("chain", "Go", "one", ()),
        ("chain", "Go", "one", ("A", "A")),
        ("pipeline", "Mail", "scan", ("Spam",)),
    ],
)
def test_what_is_not_plain_is_left_to_the_long_way(agent: str, event: str, step: str, events: tuple[str, ...]) -> None:
    """No event, several of them, and an event that ends the run."""
    assert shortly(started(ALL[agent], event), step, *events) is None


def test_a_result_of_an_attempt_that_is_over_is_left_to_the_long_way() -> None:
    """A superseded attempt is refused there."""
    history = started(CHAIN, "Go")
    history.complete("one", "A")
    assert shortly(history, "one", "A") is None


def test_without_a_free_slot_the_long_way_offers_the_step() -> None:
    """The short way only begins."""
    history = started(CHAIN, "Go")
    assert shortly(history, "one", "A", world=World(free_slots=0)) is None


def test_a_row_that_raises_is_asked_again_the_long_way() -> None:
    """There its failure becomes that of the step."""

    def raises(run: object, event: object) -> dict[str, object]:
        raise ZeroDivisionError

    table = Table(
        "new", frozenset({"new", "old", "failed"}), frozenset(), (Row("aged", "new", "A", "old", fields=raises),)
    )
    agent = build("raising", (step("one", takes("Go"), gives="A"),), {"Go": "start"}, table)
    assert shortly(started(agent, "Go"), "one", "A") is None


@pytest.mark.parametrize("standing", [{"taken_over": "ann"}, {"approvals": {"1.0": None}}, {"unhandled": ["1.0"]}])
def test_a_run_in_which_something_stands_is_left_to_the_long_way(standing: dict[str, Any]) -> None:
    """A person who took it over, an approval that a move may take back, events that came while it was failed."""
    history = started(CHAIN, "Go")
    run = msgspec.structs.replace(history.it, **standing)
    result = Completed(history.action("one").id, (output("A"),))
    assert onward(CHAIN, history.key, run, result, history.now, WORLD) is None
