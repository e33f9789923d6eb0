"""What a run still learns when it has ended."""

from typing import Any

import pytest
from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History, refused

from waybook.engine.definition import Row, Table
from waybook.engine.inputs import Accepted, Nothing


def ended(row: Row, facts: frozenset[str] = frozenset({"Heard"})) -> History:
    """A run that is over, whose table has `row` for what it hears afterwards."""
    table = Table(
        initial="open",
        states=frozenset({"open", "over", "other"}),
        terminal=frozenset({"over"}),
        rows=(Row("end", "open", "Done", "over"), row),
        facts=facts,
    )
    agent = build(
        "hearing", (step("one", takes("Go"), gives="Done"), step("two", takes("Heard"))),
        {"Go": "start", "Heard": "external"}, table,
    )  # fmt: skip
    history = History(agent)
    history.start()
    history.complete("one", "Done")
    assert history.it.outcome is not None
    return history


def note(run: Any, event: Any) -> dict[str, Any]:
    return {"heard": True}


def test_a_fact_is_stored_sets_fields_and_begins_nothing() -> None:
    """The run stays ended."""
    history = ended(Row("heard", "*", "Heard", None, fields=note))
    assert isinstance(history.signal("Heard"), Accepted)
    assert history.it.fields["heard"] is True
    assert (history.it.state, history.running()) == ("over", [])


@pytest.mark.parametrize("row", [Row("move", "*", "Heard", "other"), Row("else", "open", "Heard", None, fields=note)])
def test_no_row_moves_a_run_that_has_ended_and_one_of_another_state_says_nothing(row: Row) -> None:
    """What would move it is not taken, so there is nothing to do."""
    history = ended(row)
    assert isinstance(history.signal("Heard"), Nothing)
    assert history.it.state == "over" and "heard" not in history.it.fields


def test_what_the_table_does_not_list_is_refused() -> None:
    """A run that has ended takes no orders."""
    assert (
        refused(ended(Row("heard", "*", "Heard", None, fields=note), facts=frozenset()).signal("Heard")) == "terminal"
    )
