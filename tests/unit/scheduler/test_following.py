"""What follows from a commit (`follow`), and what is left out."""

import itertools
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.events.strategies import COMMITS

from waybook.engine.inputs import ChildAnswer
from waybook.engine.ports import TimerRef
from waybook.events import engine as e
from waybook.events.codec import commit_headers
from waybook.events.commit import Commit
from waybook.events.headers import PARENT
from waybook.events.subjects import RunKey
from waybook.services.scheduler.effects import ArmTimer, CancelTimer, Effect, Give, StopSends, handed_over
from waybook.services.scheduler.following import by_server_clock, follow, matters, without_useless


def with_names(made: Commit) -> Commit:
    """The commit with names that a header can hold."""
    named = (
        msgspec.structs.replace(event, event=f"E{len(event.event)}") if isinstance(event, e.EventPublished) else event
        for event in made.events
    )
    return msgspec.structs.replace(made, definition="d", events=tuple(named))


COMMITS_OF_RUNS = COMMITS.map(with_names)
KEY = RunKey("main", "inbox", "r1")
CHILD_OF = {PARENT: "asker/a1/4.2"}


def commit(*events: e.EngineEvent, version: int = 7) -> Commit:
    return Commit(version=version, walk=1, at=5, actor="w", definition="d", events=events)


def followed(*events: e.EngineEvent, key: RunKey = KEY, more: Mapping[str, str] = {}) -> tuple[Effect, ...]:
    made = commit(*events)
    return follow(key, made, {**commit_headers(made), **more})


def armed(due: int = 1000) -> e.TimerArmed:
    return e.TimerArmed(timer_class="retry", due=due, about="1:s:1.1")


def test_an_armed_timer_is_named_by_its_event() -> None:
    failed = e.StepFailed(
        action="3.1", step="s", error=e.Failure("Boom", "x"), failures=1, exhausted=False, duration_ms=1
    )
    assert followed(failed, armed(1234)) == (ArmTimer(TimerRef(KEY, "7.1", "retry", 1234)),)


def test_a_cancelled_timer_is_taken_back_by_its_own_name() -> None:
    assert followed(e.TimerCancelled(timer="3.2", reason="retried")) == (CancelTimer(KEY, "3.2"),)


def test_an_offered_step_asks_any_worker() -> None:
    offered = e.StepOffered(step="s", trigger="2.0", walk=1, bindings={"a": "2.0"})
    assert followed(offered) == (Give("main.inbox.r1/7.0/exec", KEY, "exec", {"step": "s", "trigger": "2.0"}),)


def test_a_child_is_started_as_asked_under_the_same_tenant() -> None:
    start = msgspec.Raw(b'{"event":"Go"}')
    asked = e.ChildRequested(request="7.0", agent="report", run="c1", start=start)
    assert followed(asked) == (Give("main.inbox.r1/7.0/start", RunKey("main", "report", "c1"), "start", start),)


@pytest.mark.parametrize("target", ["report.c1", "main.report.c1", "other.report.c1"])
def test_a_cancel_reaches_a_run_of_the_same_tenant_only(target: str) -> None:
    [give] = followed(e.CancelRequested(target=target, reason="why"))
    assert give == Give("main.inbox.r1/7.0/cancel", RunKey("main", "report", "c1"), "cancel", {"reason": "why"})


def test_the_end_of_a_child_is_told_to_who_asked_for_it() -> None:
    [give] = followed(e.RunEnded(outcome="completed", result="6.1"), more=CHILD_OF)
    assert isinstance(give, Give) and (give.key, give.verb) == (RunKey("main", "asker", "a1"), "answer")
    assert give.payload == ChildAnswer("4.2", "inbox", "r1", "completed", "6.1")


@pytest.mark.parametrize(("agent", "run"), [("report", "c>"), ("re.port", "c1"), ("", "c1"), ("report", "")])
def test_what_no_subject_may_name_is_left_out(agent: str, run: str) -> None:
    """One wrong name must not stop the relay of all other runs."""
    asked = e.ChildRequested(request="7.0", agent=agent, run=run, start=msgspec.Raw(b"{}"))
    assert followed(asked, e.CancelRequested(target=f"{agent}.{run}.", reason="why")) == ()


@pytest.mark.parametrize("exhausted", [True, False])
def test_a_child_that_is_out_of_attempts_is_told_too(exhausted: bool) -> None:
    failed = e.StepFailed(
        action="3.1", step="s", error=e.Failure("Boom", "x"), failures=3, exhausted=exhausted, duration_ms=1
    )
    told = [give.payload.outcome for give in followed(failed, more=CHILD_OF) if isinstance(give, Give)]
    assert told == (["exhausted"] if exhausted else [])


def test_a_run_that_nobody_asked_for_tells_nobody() -> None:
    assert followed(e.RunEnded(outcome="completed")) == ()


def test_the_kill_switch_makes_sends_look_again_when_it_is_set_only() -> None:
    policy = RunKey("main", "@policy", "_")
    assert followed(e.KillSwitchSet(on=True, by="ada"), key=policy) == (StopSends("main", "main.@policy._/7.0"),)
    assert followed(e.KillSwitchSet(on=False, by="ada"), key=policy) == ()


def test_what_is_taken_back_is_not_armed_and_still_taken_back() -> None:
    """It may have been armed when the same commits were told before."""
    first = ArmTimer(TimerRef(KEY, "7.1", "retry", 5))
    other = ArmTimer(TimerRef(KEY, "8.0", "retry", 5))
    back = CancelTimer(KEY, "7.1")
    assert without_useless([first, other, back]) == [other, back]


@given(COMMITS_OF_RUNS, st.booleans())
def test_nothing_follows_from_a_commit_whose_headers_say_that_it_does_not_matter(made: Commit, child: bool) -> None:
    headers = {**commit_headers(made), **(CHILD_OF if child else {})}
    if not matters(headers):
        assert follow(KEY, made, headers) == ()


@given(st.lists(COMMITS_OF_RUNS, max_size=4))
def test_the_same_commit_gives_the_same_ids_and_other_commits_give_others(given_commits: list[Commit]) -> None:
    """Ids are made of (run, version, index): doing it twice is doing it once."""
    numbered = [msgspec.structs.replace(c, version=n) for n, c in enumerate(given_commits, 1)]
    ids = [[one.id for one in follow(KEY, c, CHILD_OF) if isinstance(one, Give)] for c in numbered]
    assert ids == [[one.id for one in follow(KEY, c, CHILD_OF) if isinstance(one, Give)] for c in numbered]
    every = list(itertools.chain(*ids))
    assert len(every) == len(set(every))
    assert all(i.isascii() and i.isprintable() and len(i) <= 200 for i in every)


def test_a_fire_is_handed_over_under_the_timer_s_name() -> None:
    assert handed_over(TimerRef(KEY, "7.1", "retry", 5)) == Give(
        "main.inbox.r1/7.1/timer", KEY, "timer", {"timer": "7.1"}
    )


@pytest.mark.parametrize(
    ("timer_class", "skew_ms", "shift_ms"),
    [
        ("retry", 3_600_000, 3_600_000),
        ("wait", -3_600_000, -3_600_000),
        ("retry", 1_500, 0),
        ("deadline", 3_600_000, 0),
        ("send", -3_600_000, 0),
    ],
)
def test_a_wait_is_as_long_as_it_was_meant_where_clocks_differ(
    timer_class: e.TimerClass, skew_ms: int, shift_ms: int
) -> None:
    """A point in time stays what it is; a length of time counts from when the server stored the commit."""
    timer = TimerRef(KEY, "7.1", timer_class, 10_000_000)
    shifted = by_server_clock(ArmTimer(timer), 9_000_000, 9_000_000 + skew_ms)
    assert shifted == ArmTimer(msgspec.structs.replace(timer, due=timer.due + shift_ms))
    cancel = CancelTimer(KEY, "7.1")
    assert by_server_clock(cancel, 0, skew_ms) is cancel
