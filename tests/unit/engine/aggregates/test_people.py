"""Policy, kill switch, grants and threads: what people change, and who may."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.aggregates.shared import Log, reason

from waybook.engine.aggregates.grants import Grants, grants_of
from waybook.engine.aggregates.policy import policy_of
from waybook.engine.aggregates.requests import (
    Body,
    ChangeGrant,
    ChangePolicy,
    Record,
    Reserve,
    SetKillSwitch,
    SetThread,
)
from waybook.engine.aggregates.thread import thread_of
from waybook.events.engine import ThreadJoined


def test_values_stand_until_they_are_changed_or_taken_away() -> None:
    """Each change is one more version; what changes nothing is none."""
    log = Log("@policy")
    assert policy_of(log.read()).version == 0
    log.ask(ChangePolicy({"daily_cap": 10, "hours": "9-17"}))
    assert reason(log.ask(ChangePolicy({"daily_cap": 10}))[0]) == "already_there"
    log.ask(ChangePolicy({"hours": None}))
    policy = policy_of(log.read())
    assert policy.values == {"daily_cap": 10} and policy.version == 2
    assert reason(log.ask(ChangePolicy({}))[0]) == "invalid_input"


def test_the_kill_switch_is_no_change_of_the_policy() -> None:
    """It says who turned it and why; turning it twice is nothing to do."""
    log = Log("@policy")
    log.ask(SetKillSwitch(True, "strange mails"), by="eve")
    assert reason(log.ask(SetKillSwitch(True))[0]) == "already_there"
    policy = policy_of(log.read())
    assert (policy.kill_switch.on, policy.kill_switch.by, policy.kill_switch.reason) == (True, "eve", "strange mails")
    assert policy.version == 0 and policy.kill_switch.at == log.now


def test_a_command_is_applied_once() -> None:
    """A redelivered command finds itself applied, whatever came in between."""
    log = Log("@policy")
    assert reason(log.ask(SetKillSwitch(True), command="c1")[0]) == "accepted"
    log.ask(SetKillSwitch(False), command="c2")
    assert reason(log.ask(SetKillSwitch(True), command="c1")[0]) == "applied"
    assert not policy_of(log.read()).kill_switch.on


def test_before_the_first_grant_everybody_may_and_then_only_who_holds_one() -> None:
    """The first grant has to keep somebody who can grant."""
    log = Log("@grants")
    assert reason(log.ask(ChangeGrant("bob", ("decide",)))[0]) == "would_lock_out"
    log.ask(ChangeGrant("ann", ("*",)))
    assert reason(log.ask(ChangeGrant("bob", ("decide:send",)), by="bob")[0]) == "not_permitted"
    log.ask(ChangeGrant("bob", ("decide:send",)))
    grants = grants_of(log.read())
    assert grants.may_decide("bob", "send") and not grants.may_decide("bob", "pay") and grants.may_decide("ann", "pay")
    assert reason(log.ask(ChangeGrant("ann", ()))[0]) == "would_lock_out"
    policy = Log("@policy")
    assert reason(policy.ask(SetKillSwitch(True), by="bob", grants=grants)[0]) == "not_permitted"
    assert reason(policy.ask(SetKillSwitch(True), by="ann", grants=grants)[0]) == "accepted"


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", "eve"]),
            st.sampled_from(["ann", "bob", "eve"]),
            st.sampled_from([(), ("*",), ("grants",), ("decide",), ("grants", "policy")]),
        ),
        max_size=20,
    )
)
def test_somebody_can_always_grant(changes: list[tuple[str, str, tuple[str, ...]]]) -> None:
    """No order of changes leaves an installation that has grants without anybody who may change them."""
    log = Log("@grants")
    for by, person, may in changes:
        before = grants_of(log.read())
        outcome = log.ask(ChangeGrant(person, may), by=by)[0]
        assert reason(outcome) != "accepted" or before.may(by, "grants")
        grants = grants_of(log.read())
        assert grants.version == 0 or grants.holders("grants")


def test_a_new_message_opens_a_closed_thread() -> None:
    """A run joins once; who joins opens the thread, and the send before it can see that it is not the newest."""
    log = Log("@thread", "t")
    log.ask(Record(ThreadJoined(agent="inbox", run="r1")))
    log.ask(SetThread("resolved", "answered by phone"))
    assert thread_of(log.read()).status == "resolved"
    assert reason(log.ask(Record(ThreadJoined(agent="inbox", run="r1")))[0]) == "applied"
    assert thread_of(log.read()).status == "resolved"
    log.ask(Record(ThreadJoined(agent="inbox", run="r2", message="m2")))
    thread = thread_of(log.read())
    assert thread.status == "open"
    assert (
        thread.newer_than("r1") == ("r2",) and thread.newer_than("r2") == () and thread.newer_than("t") == ("r1", "r2")
    )


@pytest.mark.parametrize(
    ("agent", "body"),
    [("@policy", ChangeGrant("a", ("*",))), ("@thread", SetKillSwitch(True)), ("@grants", Reserve("r", "e", 1, 2))],
)
def test_an_aggregate_knows_its_own_requests_only(agent: str, body: Body) -> None:
    """What is asked of the wrong aggregate is refused and leaves nothing."""
    log = Log(agent)
    assert reason(log.ask(body)[0]) == "unknown_verb" and log.stored == []


def test_grants_are_not_guessed() -> None:
    """Holding one word is not holding another; `*` is all of them."""
    grants = Grants(3, {"ann": ("*",), "bob": ("decide:send", "policy")})
    assert grants.holders("kill-switch") == ("ann",)
    assert grants.may("bob", "policy") and not grants.may("bob", "kill-switch") and not grants.may("nobody", "policy")
