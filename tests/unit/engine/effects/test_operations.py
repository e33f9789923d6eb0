"""Operations, rule by rule, where the model has nothing to choose."""

from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History, refused

from waybook.engine.definition import RetryPolicy
from waybook.engine.hold import hold, why
from waybook.engine.inputs import Accepted, Continue, Nothing
from waybook.engine.intents import Intend, Park, Renew, Settle
from waybook.engine.operations import FIRST_ASK_MS, LONGEST_ASK_MS, WAKE_MS
from waybook.events import engine as e

SENDER = build(
    "sender",
    (step("send", takes("Go"), gives="Done", retry=RetryPolicy(max_failures=2)),),
    {"Go": "start", "Done": "stop"},
)
KEY = "1:send:1.1/mail/0"


def history() -> History:
    made = History(SENDER)
    made.start()
    return made


def intend(made: History, **options: str) -> object:
    return made.one(made.apply(Intend(made.action("send").id, "mail", "d", {}, **options)))  # type: ignore[arg-type]


def settle(made: History, outcome: e.OperationOutcome, key: str = KEY, **options: object) -> object:
    return made.one(made.apply(Settle(key, outcome, "call", **options)))  # type: ignore[arg-type]


def test_an_operation_of_a_step_that_lost_its_workers_for_good_is_asked_for() -> None:
    """No attempt will meet it, so a timer does; whether it happened outranks that the run is stuck."""
    made = history()
    intend(made)
    made.again("k1")
    intend(made)
    assert made.it.operations[KEY].outcome is None
    made.again("k1", later=2)
    assert made.action("send").exhausted
    assert hold(SENDER, made.it).kind == "reconciling" and KEY in why(SENDER, made.it).next_move
    (timer,) = made.timers()
    assert made.fire(timer) == Accepted(asks=(KEY,))
    settle(made, "succeeded")
    assert (hold(SENDER, made.it).kind, made.timers()) == ("dead command", [])


def test_the_other_side_is_asked_less_and_less_often() -> None:
    made = history()
    intend(made)
    made.apply(Park(made.action("send").id, KEY, made.now + 1_000))
    waits = []
    for _ in range(12):
        (timer,) = made.timers()
        made.now = max(made.now, made.it.timers[timer].due)
        made.fire(timer)
        (timer,) = made.timers()
        waits.append(made.it.timers[timer].due - made.now)
    assert waits[0] == FIRST_ASK_MS and waits[-1] == LONGEST_ASK_MS and waits == sorted(waits)


def test_what_is_settled_while_it_waits_goes_on_with_a_continue() -> None:
    """A fact holds no command; the watchdog's will do."""
    made = history()
    intend(made)
    made.apply(Park(made.action("send").id, KEY, None))
    assert settle(made, "succeeded") == Accepted(wakes=(KEY,))
    assert made.running() == []
    made.give(Continue())
    assert made.running() == ["send"] and intend(made) == Nothing("settled")


def test_what_is_settled_while_it_waits_goes_on_though_its_bringer_dies_before_it_wakes_the_run() -> None:
    """A timer in the fact's own commit is left, which the relay derives from the log."""
    made = history()
    intend(made)
    made.apply(Park(made.action("send").id, KEY, None))
    assert made.timers() == []
    settle(made, "succeeded")
    (timer,) = made.timers()
    assert made.it.timers[timer].due == made.now + WAKE_MS
    made.fire(timer)
    assert made.running() == ["send"] and made.timers() == [] and intend(made) == Nothing("settled")


def test_what_is_woken_by_its_bringer_needs_no_timer_any_more() -> None:
    made = history()
    intend(made)
    made.apply(Park(made.action("send").id, KEY, None))
    settle(made, "succeeded")
    made.give(Settle(KEY, "succeeded", "call"))
    assert made.running() == ["send"] and made.timers() == []


def test_a_generation_is_for_keys_of_the_authors_own() -> None:
    made = history()
    intend(made)
    settle(made, "succeeded")
    assert refused(made.give(Renew(KEY))) == "invalid_input"
    intend(made, key="reply")
    assert refused(made.give(Renew("send/mail/reply/1"))) == "unresolved"
    assert refused(made.give(Renew("nothing"))) == "unknown_operation"
    settle(made, "succeeded", "send/mail/reply/1")
    made.give(Renew("send/mail/reply/1"))
    assert made.give(Renew("send/mail/reply/1")) == Nothing("nothing_due")
    assert intend(made, key="reply") == Accepted() and "send/mail/reply/2" in made.it.operations


def test_what_did_not_happen_is_said_once_however_it_is_said() -> None:
    made = history()
    intend(made)
    settle(made, "failed")
    assert settle(made, "absent") == Nothing("settled") and settle(made, "unknown") == Nothing("settled")
    assert settle(made, "succeeded") == Accepted()
    assert made.it.operations[KEY].disputed == ("succeeded",)
    assert intend(made) == Nothing("unresolved"), "two contradict each other: a person decides"
