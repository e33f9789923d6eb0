"""Windows: a state that does something a while later, unless it is called back before."""

from typing import Any

from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History

from waybook.engine.definition import Row, Table, Window
from waybook.engine.inputs import Continue, Move, Nothing, Outcome, Retry
from waybook.engine.windows import pending

DELAY_MS = 15_000


def _sends(run: Any) -> dict[str, Any]:
    return {"text": run.fields.get("text", "hello")}


def _begun(run: Any, event: Any) -> dict[str, Any]:
    return {"begun": True}


def letters(delay_ms: int = DELAY_MS, *, stopped: bool = False) -> History:
    """A letter that leaves a while after it was approved; `stopped`: the table calls it back instead."""
    table = Table(
        initial="draft",
        states=frozenset({"draft", "approved", "sent", "failed"}),
        terminal=frozenset({"sent"}),
        rows=(
            Row("approve", "draft", "Yes", "approved", fields=lambda run, event: {"begun": None}),
            Row("undo", "approved", "Undo", "draft", guard=lambda run, event, world: pending(run) is not None),
            *((Row("stopped", "approved", "Due", "draft"),) if stopped else ()),
            Row("leaves", "approved", "Due", fields=_begun),
            Row("sent", "approved", "Sent", "sent"),
            Row("fail", "*", "StepFailed", "failed"),
            Row("retry", "failed", "RetryRequested", "draft"),
        ),
        windows={
            "approved": Window(
                event="Due",
                fields=_sends,
                delay_ms=lambda run, world: delay_ms,
                is_over=lambda run: bool(run.fields.get("begun")),
            )
        },
    )
    definition = build(
        "letter",
        (step("send", takes("Due"), gives="Sent"),),
        {"Go": "start", "Yes": "external", "Undo": "external", "Due": "decision"},
        table,
    )
    history = History(definition)
    history.start("Go")
    return history


def say(history: History, event: str) -> Outcome:
    """A word from outside."""
    return history.signal(event)


def fire(history: History) -> Outcome:
    assert history.run is not None
    timer = pending(history.run)
    assert timer is not None
    return history.give(Retry(timer))


def state(history: History) -> tuple[str, list[str]]:
    """The state, and the steps that are under way."""
    assert history.run is not None
    return history.run.state, [a.step for a in history.run.open_actions()]


def test_what_a_window_is_for_begins_when_its_timer_fires() -> None:
    history = letters()
    say(history, "Yes")
    assert state(history) == ("approved", [])
    fire(history)
    assert state(history) == ("approved", ["send"])


def test_leaving_the_state_takes_the_timer_back() -> None:
    """And entering it again opens another window; the old timer moves nothing any more."""
    history = letters()
    say(history, "Yes")
    assert history.run is not None
    first = pending(history.run)
    assert first is not None
    say(history, "Undo")
    assert not history.run.timers
    say(history, "Yes")
    assert history.give(Retry(first)) == Nothing("resolved")
    assert state(history) == ("approved", []) and pending(history.run) not in (None, first)


def test_without_a_delay_it_begins_in_the_same_commit() -> None:
    history = letters(0)
    before = history.run.version if history.run is not None else 0
    say(history, "Yes")
    assert history.run is not None
    assert state(history) == ("approved", ["send"])
    assert history.run.version == before + 1 and not history.run.timers


def test_a_direct_call_opens_the_window_too() -> None:
    history = letters(0)
    history.give(Move("approved"))
    assert state(history) == ("approved", ["send"])


def test_the_table_may_call_it_back_when_it_is_over() -> None:
    for delay in (0, DELAY_MS):
        history = letters(delay, stopped=True)
        say(history, "Yes")
        if delay:
            fire(history)
        assert state(history) == ("draft", [])


def test_continue_looks_whether_the_table_calls_it_back_and_else_leaves_the_timer_alone() -> None:
    stopped, waiting = letters(stopped=True), letters()
    for history in (stopped, waiting):
        say(history, "Yes")
        history.give(Continue())
    assert state(stopped) == ("draft", [])
    assert state(waiting) == ("approved", [])


def test_continue_ends_a_window_that_no_timer_will_end() -> None:
    """Its timer fired, and nothing came of it: the run would wait for ever."""
    history = letters()
    say(history, "Yes")
    assert history.run is not None
    timer = pending(history.run)
    assert timer is not None
    history.run = history.run.copy()
    history.run.timers.pop(timer)
    history.give(Continue())
    assert state(history) == ("approved", ["send"])
