"""Branches: labels that events carry on to what they trigger, joins of a number known at run time, retries of one alone."""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History, output

from waybook.engine.definition import Definition, RetryPolicy
from waybook.engine.dispatch import bind
from waybook.engine.hold import why
from waybook.engine.inputs import Completed, Failed, Retry, World
from waybook.engine.run import Action, Published, Run
from waybook.events import engine as e

STEPS = (
    step("split", takes("Go"), gives="Planned|Item"),
    step("work", takes("Item"), gives="Half", retry=RetryPolicy(max_failures=3)),
    step("finish", takes("Half"), gives="Part"),
    step("join", takes("Part", "list"), takes("Planned"), gives="Done"),
)


def _counted(definition: Definition) -> Callable[[Run, Published], bool | None]:
    """The precondition of `join`: as many parts as were planned."""

    def all_there(run: Run, trigger: Published) -> bool | None:
        bound = bind(definition.steps["join"], run, trigger)
        if bound is None:
            return None
        planned = run.event(str(bound["planned"]))
        return len(bound["part"] or ()) == int(msgspec.json.decode(planned.payload)["count"])

    return all_there


_FORK = build("fork", STEPS, {"Go": "start", "Done": "stop"})
COUNTED = msgspec.structs.replace(_FORK, gates={"join": _counted(_FORK)})
"""A split in as many branches of two steps as it says, and their join."""


def split(count: int, *, world: World | None = None) -> History:
    history = History(COUNTED)
    history.start()
    items = [output("Item", str(n)) for n in range(1, count + 1)]
    history.complete("split", output("Planned", count=count), *items, **({"world": world} if world else {}))
    return history


def of(history: History, name: str, branch: str) -> Action:
    return next(a for a in reversed(history.it.actions.values()) if (a.step, a.branch) == (name, branch))


def end(history: History, name: str, branch: str, event: str) -> None:
    history.apply(Completed(of(history, name, branch).id, (output(event),)))


def break_(history: History, branch: str, *, retryable: bool = True) -> None:
    error = e.Failure("Boom", f"branch {branch} went wrong", retryable)
    history.apply(Failed(of(history, "work", branch).id, error))


def test_a_label_is_carried_through_the_steps_of_its_branch_and_ends_at_the_join() -> None:
    history = split(2)
    for name, event in (("work", "Half"), ("finish", "Part")):
        for branch in ("2", "1"):
            end(history, name, branch, event)
    assert [p.branch for p in history.it.log if p.event == "Part"] == ["2", "1"]
    assert history.action("join").branch is None


def test_a_list_that_one_branch_alone_has_filled_belongs_to_that_branch() -> None:
    definition = build(
        "lists",
        (
            step("split", takes("Go"), gives="Item"),
            step("gather", takes("Item", "list"), takes("Go"), gives="Done"),
        ),
        {"Go": "start"},
    )
    history = History(definition)
    history.start()
    history.complete("split", output("Item", "a"), output("Item", "a"), output("Item", "b"))
    assert [a.branch for a in history.it.actions.values() if a.step == "gather"] == ["a", "a", None]


def test_an_event_that_begins_a_branch_of_its_own_keeps_its_own_label() -> None:
    history = split(1)
    history.apply(Completed(of(history, "work", "1").id, (output("Half", "1.a"),)))
    assert history.action("finish").branch == "1.a"


def test_a_label_is_no_part_of_the_identity() -> None:
    """Two branches of one label are two executions."""
    history = History(COUNTED)
    history.start()
    history.complete("split", output("Planned", count=2), output("Item", "x"), output("Item", "x"))
    assert history.running() == ["work", "work"]


def test_branches_beyond_the_free_slots_are_offered_with_their_label() -> None:
    history = split(3, world=World(free_slots=1))
    assert [o.branch for o in history.it.offers.values()] == ["2", "3"]
    assert why(COUNTED, history.it).next_move == "running work [1] (attempt 1)"


def test_the_retry_of_one_branch_runs_that_branch_alone() -> None:
    """The others are reused: what they returned stands, and what they still do goes on."""
    history = split(3)
    end(history, "work", "1", "Half")
    bound = of(history, "work", "2").bindings
    break_(history, "2")
    end(history, "finish", "1", "Part")
    end(history, "work", "3", "Half")
    assert history.running() == [], "while it is failed nothing begins"
    history.fire(history.timers()[0])
    reused = [history.it.actions[x.action].title for x in history.last if isinstance(x, e.StepReused)]
    assert reused == ["split", "work [1]", "work [3]", "finish [1]"]
    begun = [(a.title, a.attempt) for a in history.it.open_actions()]
    assert begun == [("work [2]", 2), ("finish [3]", 1)]
    assert of(history, "work", "2").bindings == bound


def test_who_asks_is_told_which_branch_is_out_of_attempts() -> None:
    history = split(2)
    break_(history, "2", retryable=False)
    end(history, "work", "1", "Half")
    told = why(COUNTED, history.it)
    assert told.hold.reason == "exhausted"
    assert told.hold.text == "work [2] is out of attempts; a person decides"
    assert told.error == "work [2]: branch 2 went wrong"


def test_errors_of_several_branches_are_all_told() -> None:
    history = split(3)
    break_(history, "1")
    break_(history, "3")
    assert why(COUNTED, history.it).error == "work [1]: branch 1 went wrong; work [3]: branch 3 went wrong"


def test_one_death_under_many_branches_is_one_failure_of_the_step() -> None:
    """A worker that dies under five branches loses five attempts; each begins again, and three deaths convict."""
    history = split(5)
    for deaths in (1, 2):
        history.again(list(history.delivered)[-1])
        assert history.it.failures == {"work": deaths}
        assert [a.attempt for a in history.it.open_actions()] == [deaths + 1] * 5
    history.again(list(history.delivered)[-1])
    assert (history.it.state, history.it.failures) == ("failed", {"work": 3})
    assert len(history.it.convicted) == 1


def test_an_outage_that_breaks_all_branches_is_tried_again_by_itself() -> None:
    """Three branches, three attempts each: the step fails three times, not the first three executions of it."""
    history = split(3)
    for round_ in (1, 2, 3):
        for branch in ("1", "2", "3"):
            break_(history, branch)
        assert history.it.failures == {"work": round_}
        assert len({history.it.timers[t].due for t in history.timers()}) == (0 if round_ == 3 else 1)
        while round_ < 3 and history.timers():
            history.fire(history.timers()[0])
    assert why(COUNTED, history.it).hold.reason == "exhausted"


def test_a_branch_does_not_outlive_its_attempts_while_another_one_waits_longer() -> None:
    """No execution is tried more often than its step may fail."""
    history = split(2)
    tomorrow = history.now + 24 * 3_600_000
    error = e.Failure("Boom", "come again tomorrow")
    history.apply(Failed(of(history, "work", "2").id, error, not_before=tomorrow))
    for _ in range(2):
        break_(history, "1")
        timer = next(
            t for t in history.timers() if history.it.timers[t].about.endswith(of(history, "work", "1").trigger)
        )
        history.fire(timer)
    break_(history, "1")
    assert of(history, "work", "1").exhausted
    assert history.it.failures == {"work": 3}


def test_a_persons_retry_takes_up_the_exhausted_branch_too() -> None:
    history = split(2)
    break_(history, "1", retryable=False)
    break_(history, "2")
    history.give(Retry(), person=True)
    assert [a.title for a in history.it.open_actions()] == ["work [1]", "work [2]"]


@st.composite
def _plays(draw: st.DrawFn) -> tuple[int, list[tuple[str, int]]]:
    count = draw(st.integers(1, 5))
    moves = st.tuples(st.sampled_from(["end", "end", "end", "break", "fire", "person", "lose"]), st.integers(0, 9))
    return count, draw(st.lists(moves, max_size=40))


@settings(deadline=None)
@given(_plays())
def test_whatever_fails_the_join_runs_once_with_every_part_and_no_finished_branch_runs_again(
    play: tuple[int, list[tuple[str, int]]],
) -> None:
    count, moves = play
    history = split(count)
    for move, pick in moves:
        _move(history, move, pick)
    for _ in range(20 * count):
        if history.it.ended:
            break
        _move(history, "fire" if not history.running() and history.timers() else "end", 0)
        if not history.running() and not history.timers() and not history.it.ended:
            _move(history, "person", 0)
    assert history.it.outcome == "completed"
    completed = [(a.step, a.trigger) for a in history.it.actions.values() if a.status == "completed"]
    assert len(set(completed)) == len(completed), "no finished execution runs again"
    assert sorted(a.step for a in history.it.actions.values() if a.status == "completed") == sorted(
        ["split", "join", *["work", "finish"] * count]
    )
    joined = history.action("join")
    parts = joined.bindings["part"]
    assert isinstance(parts, tuple) and len(parts) == count
    assert {history.it.event(name).branch for name in parts} == {str(n) for n in range(1, count + 1)}
    assert joined.branch is None if count > 1 else joined.branch == "1"


NEXT = {"work": "Half", "finish": "Part", "join": "Done"}


def _move(history: History, move: str, pick: int) -> None:
    running: list[Any] = [a for a in history.it.open_actions() if a.status == "running"]
    if move in ("end", "break") and running:
        action = running[pick % len(running)]
        if move == "end":
            history.apply(Completed(action.id, (output(NEXT[action.step]),)))
        else:
            history.apply(Failed(action.id, e.Failure("Boom", "went wrong", pick % 3 > 0)))
    elif move == "fire" and history.timers():
        history.fire(history.timers()[pick % len(history.timers())])
    elif move == "person":
        history.give(Retry(), person=True)
    elif move == "lose" and history.delivered:
        history.again(list(history.delivered)[-1])  # another worker has taken the command over
