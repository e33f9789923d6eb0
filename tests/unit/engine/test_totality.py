"""Decide always answers: also when an author's table raises, and when the agent has changed (DESIGN 4)."""

from typing import Any

import pytest
from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History, output, refused

from waybook.engine.definition import FAILED, Row, Table
from waybook.engine.hold import hold
from waybook.engine.inputs import Completed, Continue, Nothing, Signal, Start


def raises(*given: Any) -> Any:
    raise ZeroDivisionError("by zero")


def table(**broken: Any) -> Table:
    """Row A moves on A, Word on a word from outside; what `broken` names raises."""
    return Table(
        initial="running",
        states=frozenset({"running", "moved", FAILED}),
        terminal=frozenset(),
        rows=(
            Row("A", "running", "A", "moved", **broken.get("A", {})),
            Row("Word", "running", "Word", "moved", **broken.get("Word", {})),
            Row("Go", "running", "Go", None, **broken.get("Go", {})),
            Row("F", "*", "StepFailed", FAILED, **broken.get("F", {})),
        ),
    )


def history(**broken: Any) -> History:
    made = History(
        build("t", (step("s", takes("Go"), gives="A"), step("t", takes("Go"), gives="B")),
              {"Go": "start", "Word": "external"}, table(**broken))
    )  # fmt: skip
    made.start()
    return made


@pytest.mark.parametrize("part", ["guard", "fields", "reason"])
def test_a_row_that_raises_fails_the_step_whose_result_it_was_asked_about(part: str) -> None:
    """The failure names the row and is not tried again: the same code would raise again."""
    made = history(A={part: raises})
    made.complete("s", "A")
    failed = made.action("s")
    assert (failed.status, failed.exhausted, made.it.state) == ("failed", True, FAILED)
    assert failed.error is not None
    assert failed.error.text == "lifecycle row A raised ZeroDivisionError: by zero"
    assert [p.event for p in made.it.log] == ["Go"]


def test_the_other_results_of_the_same_commit_are_not_touched() -> None:
    made = history(A={"guard": raises})
    s, t = made.action("s").id, made.action("t").id
    made.apply(Completed(t, (output("B"),)), Completed(s, (output("A"),)))
    assert (made.action("t").status, made.action("s").status) == ("completed", "failed")


def test_a_row_for_failures_that_raises_leaves_the_failure_recorded_and_a_person_to_act() -> None:
    made = history(A={"guard": raises}, F={"fields": raises})
    made.complete("s", "A")
    made.fail("t", retryable=False)
    assert [a.status for a in made.it.actions.values()] == ["failed", "failed"]
    assert (made.it.state, hold(made.definition, made.it).reason) == ("running", "exhausted")


def test_a_row_that_raises_refuses_the_command_that_it_was_asked_about() -> None:
    made = history(Word={"guard": raises})
    assert refused(made.give(Signal(output("Word")))) == "row_failed"
    other = History(build("t", (step("s", takes("Go")),), {"Go": "start"}, table(Go={"fields": raises})))
    assert refused(other.give(Start(output("Go")))) == "row_failed"
    assert other.stored == []


def test_a_run_with_steps_that_the_definition_lacks_is_left_to_a_worker_that_has_them() -> None:
    """Nothing is decided, no delivery acknowledged, and the hold says why."""
    made = history()
    old = made.definition
    made.definition = build("t", (step("renamed", takes("Go"), gives="A"),), {"Go": "start"})
    made.definition = made.definition.__class__(
        **{f: getattr(made.definition, f) for f in made.definition.__struct_fields__} | {"hash": "d2"}
    )
    assert made.give(Continue()) == Nothing("no_worker")
    assert made.again("k1") == Nothing("no_worker")
    assert hold(made.definition, made.it).kind == "no worker"
    made.definition = old
    assert hold(old, made.it).kind == "none"
