"""Dispatch: which executions an event makes due, and with which events bound (spec/dispatcher-spec.md, 5 to 7)."""

from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History, output, refused

from waybook.engine.definition import Definition, Step
from waybook.engine.inputs import Completed, Continue, Exec, Failed, Nothing, World
from waybook.events import engine as e


def collector(*steps: Step, source: str = "A|B|C") -> Definition:
    """One step that returns anything, and the steps to look at; `N` comes from outside."""
    return build("t", (step("source", takes("Go"), gives=source), *steps), {"Go": "start", "N": "external"})


def published(definition: Definition, *events: str) -> History:
    """A history in which these events were published one by one, by one step after the other or from outside."""
    history = History(definition)
    history.start()
    history.complete("source", *events)
    return history


def bindings(history: History, name: str) -> list[dict[str, object]]:
    """What each execution of a step was given, as event types with their place among their kind."""
    return [
        {k: _named(history, v) for k, v in a.bindings.items()} for a in history.it.actions.values() if a.step == name
    ]


def _named(history: History, bound: object) -> object:
    if isinstance(bound, str):
        event = history.it.event(bound)
        same = [p.name for p in history.it.log if p.event == event.event]
        return f"{event.event}{same.index(bound) + 1}"
    return tuple(_named(history, b) for b in bound) if isinstance(bound, tuple | list) else None


def test_a_step_begins_when_its_required_event_is_there() -> None:
    history = published(collector(step("s", takes("A"))), "A")
    assert bindings(history, "s") == [{"a": "A1"}]


def test_every_new_trigger_is_a_new_execution() -> None:
    history = published(collector(step("s", takes("A"))), "A", "A")
    assert bindings(history, "s") == [{"a": "A1"}, {"a": "A2"}]


def test_two_required_events_join_with_the_latest_of_the_other_and_are_no_product() -> None:
    """A1, A2, B1, B2 gives (A2, B1) and (A2, B2); A1 is never paired."""
    history = published(collector(step("s", takes("A"), takes("B"))), "A", "A", "B", "B")
    assert bindings(history, "s") == [{"a": "A2", "b": "B1"}, {"a": "A2", "b": "B2"}]


def test_a_join_sees_the_log_up_to_its_trigger_and_no_further() -> None:
    """A1, B1, A2, B2 in one commit gives the same pairs as one by one."""
    history = published(collector(step("s", takes("A"), takes("B"))), "A", "B", "A", "B")
    pairs = [{"a": "A1", "b": "B1"}, {"a": "A2", "b": "B1"}, {"a": "A2", "b": "B2"}]
    assert bindings(history, "s") == pairs


def test_a_union_takes_one_event_of_either_type() -> None:
    history = published(collector(step("s", takes("A|B"))), "B", "A")
    assert bindings(history, "s") == [{"a": "B1"}, {"a": "A1"}]


def test_a_union_beside_a_required_event_binds_the_latest_of_both_types() -> None:
    history = published(collector(step("s", takes("A|B"), takes("C"))), "A", "B", "C")
    assert bindings(history, "s") == [{"a": "B1", "c": "C1"}]


def test_an_optional_event_after_the_required_one_runs_the_step_again() -> None:
    history = published(collector(step("s", takes("A"), takes("B", "optional"))), "A", "B")
    assert bindings(history, "s") == [{"a": "A1", "b": None}, {"a": "A1", "b": "B1"}]


def test_an_optional_event_before_the_required_one_runs_the_step_once() -> None:
    history = published(collector(step("s", takes("A"), takes("B", "optional"))), "B", "A")
    assert bindings(history, "s") == [{"a": "A1", "b": "B1"}]


def test_a_list_runs_once_for_every_arrival_with_all_so_far_in_order() -> None:
    history = published(collector(step("s", takes("A|B", "list"))), "A", "B", "A")
    assert bindings(history, "s") == [{"a": ("A1",)}, {"a": ("A1", "B1")}, {"a": ("A1", "B1", "A2")}]


def test_a_fixed_list_runs_at_its_last_event_even_if_more_are_stored_already() -> None:
    history = published(collector(step("s", takes("A", "fixed_list", 2))), "A", "A", "A")
    assert bindings(history, "s") == [{"a": ("A1", "A2")}]


def test_events_are_never_used_up() -> None:
    """Two steps take the same event; a third takes the start event at any depth."""
    definition = collector(step("s", takes("A")), step("t", takes("A")), step("deep", takes("A"), takes("Go")))
    history = published(definition, "A")
    assert bindings(history, "s") == bindings(history, "t") == [{"a": "A1"}]
    assert bindings(history, "deep") == [{"a": "A1", "go": "Go1"}]


def test_a_step_that_returns_nothing_starts_nothing() -> None:
    history = published(collector(step("s", takes("A"))))
    assert history.running() == []


def test_events_in_front_of_the_stop_in_one_list_start_nothing() -> None:
    definition = build(
        "t", (step("both", takes("Go"), gives="A|Done"), step("s", takes("A"))), {"Go": "start", "Done": "stop"}
    )
    history = History(definition)
    history.start()
    history.complete("both", "A", "Done")
    assert [p.event for p in history.it.log] == ["Go", "A", "Done"]
    assert (history.running(), history.it.outcome) == ([], "completed")


def test_a_limited_step_begins_no_more_executions_than_its_limit_allows() -> None:
    """Also of events that come in one commit; `why` names the limit that was reached."""
    history = published(collector(step("s", takes("A"), max_executions=2)), "A", "A", "A")
    assert len(bindings(history, "s")) == 2


def test_a_retry_does_not_use_up_the_limit() -> None:
    history = published(collector(step("s", takes("A"), max_executions=1)), "A")
    history.fail("s")
    history.fire(history.timers()[0])
    assert history.action("s").attempt == 2


def test_a_step_may_feed_itself() -> None:
    definition = build("t", (step("loop", takes("Go|Ping"), gives="Ping", max_executions=3),), {"Go": "start"})
    history = History(definition)
    history.start()
    while history.running():
        history.complete("loop", "Ping")
    assert len(bindings(history, "loop")) == 3


def test_results_that_wait_together_bind_as_if_they_had_come_one_by_one() -> None:
    """Two branches end in one commit; the join sees the first only when the second is there."""
    definition = build(
        "t",
        (step("l", takes("Go"), gives="L"), step("r", takes("Go"), gives="R"), step("j", takes("L"), takes("R"))),
        {"Go": "start"},
    )
    history = History(definition)
    history.start()
    history.apply(Completed(history.action("r").id, (output("R"),)), Completed(history.action("l").id, (output("L"),)))
    assert bindings(history, "j") == [{"l": "L1", "r": "R1"}]
    assert history.it.event(history.action("j").trigger).event == "L"


def test_what_is_due_beyond_the_free_slots_is_offered() -> None:
    """A worker with one slot begins one execution and asks for others to begin the rest."""
    history = History(collector(step("s", takes("A"))))
    history.start()
    history.complete("source", "A", "A", "A", world=World(free_slots=1))
    assert history.running() == ["s"]
    assert [o.step for o in history.it.offers.values()] == ["s", "s"]


def test_an_offer_is_begun_once_by_who_takes_it() -> None:
    history = History(collector(step("s", takes("A"))))
    history.start()
    history.complete("source", "A", world=World(free_slots=0))
    offer = next(iter(history.it.offers.values()))
    history.give(Exec(offer.step, offer.trigger), id="x", claim=e.Claim(77, 1, 1))
    assert (history.action("s").command, history.it.offers) == ("x", {})
    assert history.give(Exec(offer.step, offer.trigger)) == Nothing("nothing_due")


def test_a_step_that_the_agent_does_not_have_is_refused() -> None:
    history = History(collector(step("s", takes("A"))))
    history.start()
    assert refused(history.give(Exec("plan", "1.1"))) == "unknown_step_kind"


def test_an_offer_whose_request_was_lost_is_begun_by_continue() -> None:
    history = History(collector(step("s", takes("A"))))
    history.start()
    history.complete("source", "A", world=World(free_slots=0))
    history.give(Continue())
    assert (history.running(), history.it.offers) == (["s"], {})


def test_an_offer_outlives_a_failure() -> None:
    """What was offered when the run failed is begun by the retry."""
    history = History(collector(step("s", takes("A")), step("other", takes("Go"))))
    history.start()
    history.complete("source", "A", world=World(free_slots=0))
    history.fail("other")
    offer = next(iter(history.it.offers.values()))
    assert history.give(Exec(offer.step, offer.trigger)) == Nothing("nothing_due")
    history.fire(history.timers()[0])
    assert sorted(history.running()) == ["other", "s"]


def test_offers_count_for_the_limit_of_executions() -> None:
    history = History(collector(step("s", takes("A"), max_executions=2)))
    history.start()
    history.complete("source", "A", "A", "A", world=World(free_slots=0))
    assert len(history.it.offers) == 2


def swapping() -> History:
    """Two executions of one step side by side; each wants to swap a value of the run context."""
    history = History(build("t", (step("split", takes("Go"), gives="A"), step("take", takes("A"))), {"Go": "start"}))
    history.start()
    history.complete("split", "A", "A")
    return history


def swap(history: History, action: str, expected: int | None, value: int) -> None:
    change = e.ContextChange("set", "n", value, True, expected)
    history.apply(Completed(action, (), context=(change,)))


def test_a_swap_whose_value_was_changed_runs_again_in_the_same_commit() -> None:
    """The faster one is stored; the slower one's next attempt begins, and it counts as no failure."""
    history = swapping()
    first, second = (a.id for a in history.it.open_actions())
    swap(history, first, None, 1)
    swap(history, second, None, 1)
    (again,) = history.it.open_actions()
    assert (again.attempt, again.step, history.it.actions[second].status) == (2, "take", "abandoned")
    assert (dict(history.it.context), history.it.failures) == ({"n": 1}, {})
    swap(history, again.id, 1, 2)
    assert (dict(history.it.context), history.it.open_actions()) == ({"n": 2}, [])


def test_two_swaps_that_are_decided_together_do_not_both_hold() -> None:
    """Merging what waits changes nothing: the second looks at what the first left."""
    history = swapping()
    first, second = (a.id for a in history.it.open_actions())
    change = e.ContextChange("set", "n", 1, True)
    history.apply(Completed(first, (), context=(change,)), Completed(second, (), context=(change,)))
    assert [a.attempt for a in history.it.open_actions()] == [2]


def test_a_swap_that_conflicts_while_the_run_is_failed_is_tried_again_with_it() -> None:
    """Nothing begins in `failed`; the execution waits for its retry like any other that failed."""
    history = History(build("t", (step("split", takes("Go"), gives="A"), step("take", takes("A"))), {"Go": "start"}))
    history.start()
    history.complete("split", "A", "A", "A")
    first, second, third = (a.id for a in history.it.open_actions())
    swap(history, first, None, 1)
    history.apply(Failed(second, e.Failure("Boom", "no")))
    swap(history, third, None, 1)
    assert (history.it.state, history.it.actions[third].status) == ("failed", "failed")
    assert len(history.it.retries) == 2
