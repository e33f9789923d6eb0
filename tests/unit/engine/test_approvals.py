"""Approvals as sealed contracts: who may decide, when, on what; what an operation may use, and what takes it back."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.engine.history import accepted, output
from tests.unit.engine.signed import DAY, DESK, FREE, REPORT, Signed, drafted, reported, word

from waybook.engine import approvals
from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.policy import KillSwitch, Policy
from waybook.engine.fold import seal
from waybook.engine.hold import hold, why
from waybook.engine.inputs import (
    Accepted,
    Cancel,
    Completed,
    Continue,
    Decide,
    Decision,
    Move,
    Outcome,
    Retry,
    Signal,
    World,
)
from waybook.engine.needs import needs
from waybook.engine.recorder import Recorder
from waybook.events import engine as e


def usable(history: Signed, *, digest: str = "d1", operation: str = "op", world: World = FREE, **options: Any) -> str:
    """The word of `check` for the newest approval."""
    name = options.get("approval") or next(reversed(history.it.approvals))
    at = options.get("at", history.now)
    action = options.get("action", "send")
    refused = approvals.check(history.it, name, operation=operation, action=action, digest=digest, at=at, world=world)
    return refused.reason if refused is not None else "usable"


def test_a_request_stands_in_the_commit_of_its_step_and_parks_the_run() -> None:
    """Nothing runs while people decide: the hold names who, and until when; the deadline is a timer."""
    history = reported()
    kinds = [type(event).__name__ for event in history.last]
    assert kinds == ["ApprovalRequested", "TimerArmed", "StepCompleted", "EventPublished"]
    assert history.running() == [] and history.waiting() == ["2.0"]
    held = hold(history.definition, history.it)
    assert (held.kind, held.reason, held.until) == ("waiting", "approval", history.now + DAY)
    (open_one,) = why(history.definition, history.it).approvals
    assert (open_one.approval, open_one.grant, open_one.digest) == ("2.0", "decide:send", "d1")
    named = reported(replace(REPORT, deciders=("ann", "bob")))
    assert "ann or bob decides on approval 2.0 until 2027-" in hold(named.definition, named.it).text


def test_a_decision_tells_the_run_and_the_next_step_begins() -> None:
    """The decision and what follows from it are one commit; the step gets who decided."""
    history = reported()
    assert accepted(history.say(reason="fine"))
    kinds = [type(event).__name__ for event in history.last]
    assert kinds == ["ApprovalDecided", "EventPublished", "StepBegan"]
    decided = history.last[0]
    assert isinstance(decided, e.ApprovalDecided)
    assert (decided.by, decided.received_at, decided.reason) == ("ann", history.now, "fine")
    assert history.running() == ["send"]
    answer = history.it.log[-1]
    assert answer.request == "2.0" and b'"decision":"approved"' in bytes(answer.payload)


def test_a_rejection_ends_the_deadline_and_tells_the_run() -> None:
    history = reported()
    assert accepted(history.say("rejected", reason="wrong month"))
    assert history.timers() == [] and b"wrong month" in bytes(history.it.log[-1].payload)


def test_one_decision_wins_and_the_other_is_told_by_whom() -> None:
    """Also when both wait for the run at once; the state is untouched by the loser."""
    history = reported()
    first = history.command(approve(), person=True, by="ann")
    second = history.command(approve(), person=True, by="bob", id="k9")
    outcomes = history.apply(first, second, world=FREE)
    assert [word(o) for o in outcomes] == ["accepted", "already_decided"]
    assert "ann" in getattr(outcomes[1], "text", "")
    commits = len(history.stored)
    assert word(history.say("rejected", by="bob")) == "already_decided" and len(history.stored) == commits


def approve(**options: Any) -> Any:
    return Decide("approved", **options)


def test_a_repeated_command_gets_the_first_answer() -> None:
    """The same command id is the same decision, whatever happened since."""
    history = reported()
    history.say(id="c1")
    history.complete("send", "Done")
    assert word(history.again("c1", world=FREE)) == "applied"
    assert sum(isinstance(event, e.ApprovalDecided) for event in history.events) == 1


@pytest.mark.parametrize(("after_ms", "said"), [(-1, "accepted"), (0, "expired"), (1, "expired")])
def test_late_is_told_by_the_receipt_of_the_command(after_ms: int, said: str) -> None:
    """Not by the clock of the worker that happens to decide it, which may be an hour off."""
    history = reported()
    deadline = history.now + DAY
    history.now += 2 * DAY
    assert word(history.say(received_at=deadline + after_ms)) == said


def test_the_deadline_and_a_decision_race_by_commit_order() -> None:
    """Whichever is committed first stands; the run is told once."""
    history = reported()
    (timer,) = history.timers()
    deadline = history.now + DAY
    history.fire(timer)
    assert b'"decision":"expired"' in bytes(history.it.log[-1].payload) and history.running() == ["send"]
    assert word(history.say(received_at=deadline - 1)) == "expired"
    other = reported()
    other.say(received_at=deadline - 1)
    other.fire(timer)
    assert [p.event for p in other.it.log] == ["Go", "Report", "Word"]
    assert usable(other) == "revoked"


@pytest.mark.parametrize(
    ("deciders", "grants", "by", "said"),
    [
        ((), Grants(), "anybody", "accepted"),
        (("ann",), Grants(), "ann", "accepted"),
        (("ann",), Grants(), "bob", "not_permitted"),
        ((), Grants(1, {"bob": ("decide",)}), "bob", "accepted"),
        ((), Grants(1, {"bob": ("decide:send",)}), "bob", "accepted"),
        ((), Grants(1, {"bob": ("decide:pay",)}), "bob", "not_permitted"),
        (("ann",), Grants(1, {"bob": ("*",)}), "ann", "not_permitted"),
        (("ann",), Grants(1, {"bob": ("*",)}), "bob", "not_permitted"),
    ],
)
def test_a_stranger_does_not_decide(deciders: tuple[str, ...], grants: Grants, by: str, said: str) -> None:
    """Both count: who was asked, and who holds the grant now."""
    history = reported(replace(REPORT, deciders=deciders))
    commits = len(history.stored)
    outcome = history.say(by=by, world=replace(FREE, grants=grants))
    assert word(outcome) == said and (len(history.stored) > commits) is (said == "accepted")


def test_only_people_decide() -> None:
    """A command of the relay is no person's, and without grants and policy read nothing is decided."""
    history = reported()
    assert word(history.say(person=False)) == "not_permitted"
    assert word(history.say(world=World())) == "unread"
    assert word(history.signal("Word", person=True)) == "invalid_input"


def test_an_approval_covers_the_action_that_it_names_and_no_other() -> None:
    """Another side effect with the very same parameters is not what people approved."""
    history = reported()
    assert accepted(history.say())
    assert (usable(history), usable(history, action="pay")) == ("usable", "other_action")


def test_what_was_looked_at_is_what_is_decided() -> None:
    """A digest that is not the contract's, an approval that was never asked for, several without a name."""
    history = reported(REPORT, replace(REPORT, resource="mailto:press", digest="d2"))
    assert history.waiting() == ["2.0", "2.2"]
    assert word(history.say()) == "ambiguous"
    assert word(history.say(approval="9.9")) == "unknown_approval"
    assert word(history.say(approval="2.2", digest="d1")) == "changed"
    assert accepted(history.say(approval="2.2", digest="d2"))


def test_what_a_person_takes_back_can_neither_be_decided_nor_used() -> None:
    history = reported()
    history.say()
    assert usable(history) == "usable"
    assert accepted(history.say("revoked", approval="2.0", by="bob", reason="wrong figures"))
    assert usable(history) == "revoked" and history.timers() == []
    assert word(history.say(approval="2.0")) == "revoked"


def test_an_approval_is_used_once_by_one_operation_for_what_it_was_given() -> None:
    """The retry of the operation that used it is the same use."""
    history = reported()
    assert usable(history) == "undecided"
    history.say()
    assert usable(history, digest="d2") == "changed" and usable(history, action="pay") == "other_action"
    assert approvals.find(history.it, "send", "d1") == "2.0" and approvals.find(history.it, "send", "d2") is None
    used = approvals.use(history.it, "2.0", "op")
    assert [type(event).__name__ for event in used] == ["ApprovalUsed", "TimerCancelled"]
    record(history, *used)
    assert usable(history) == "usable" and approvals.use(history.it, "2.0", "op") == ()
    assert usable(history, operation="other") == "already_used"
    assert word(history.say("revoked", approval="2.0")) == "already_used"


def record(history: Signed, *events: e.EngineEvent) -> None:
    """Stores events as the commit of an intent would."""
    recorder = Recorder(history.definition, history.key, history.run, history.now, FREE)
    for event in events:
        recorder.record(event)
    seal(recorder.run, recorder.version, history.now, history.definition.hash, ())
    history.store(Decision(tuple(recorder.events), (Accepted(),), (), recorder.run))


@pytest.mark.parametrize(
    ("world", "later", "said"),
    [
        (FREE, 0, "usable"),
        (replace(FREE, policy=Policy(version=1)), 0, "policy_changed"),
        (replace(FREE, grants=Grants(1, {"bob": ("*",)})), 0, "grant_gone"),
        (replace(FREE, grants=Grants(1, {"ann": ("decide:send",)})), 0, "usable"),
        (FREE, DAY, "expired"),
        (World(), 0, "unread"),
    ],
)
def test_what_stood_at_the_decision_has_to_stand_at_the_use(world: World, later: int, said: str) -> None:
    """Policy, grant and time are looked at when the approval is used, not only when it is given."""
    history = reported()
    history.say()
    assert usable(history, world=world, at=history.now + later) == said


def test_a_state_asks_however_it_is_entered_and_anew_after_an_edit() -> None:
    """An edit makes another contract of it: the one before is revoked, decided or not."""
    history = drafted("one")
    (first,) = history.waiting()
    save(history, "two")
    (second,) = history.waiting()
    assert history.it.approvals[first].revoked == "edited"
    assert word(history.say(approval=first)) == "revoked"
    assert accepted(history.say(approval=second, digest="sha-two"))
    assert history.it.state == "approved" and history.waiting() == []
    save(history, "three")
    assert history.it.state == "ready" and history.it.approvals[second].revoked == "edited"
    (third,) = history.waiting()
    assert usable(history, approval=second, digest="sha-two") == "revoked"
    history.say()
    assert usable(history, approval=third, digest="sha-three") == "usable"


def save(history: Signed, text: str) -> Outcome:
    return history.give(Signal(output("Saved", text=text)), person=True)


def test_saving_the_same_text_asks_nobody_anew() -> None:
    history = drafted("one")
    before = history.waiting()
    save(history, "one")
    assert history.waiting() == before


def test_a_recalled_approval_does_not_come_back() -> None:
    """Whoever comes back to the state has it decided anew, also when nothing changed."""
    history = drafted()
    history.say()
    history.give(Signal(output("Recalled")), person=True)
    assert [a.revoked for a in history.it.approvals.values()] == ["asked_anew", None]
    assert len(history.waiting()) == 1


def test_without_anything_to_approve_the_refusal_says_why() -> None:
    """The table's own word where its state has no contract, a general one elsewhere."""
    assert word(drafted("").say()) == "no_draft"
    history = Signed(DESK)
    history.start()
    assert word(history.say()) == "no_approval"


def test_what_a_state_asked_goes_when_the_run_leaves_it_undecided() -> None:
    history = drafted()
    (name,) = history.waiting()
    history.give(Move("approved"), person=True)
    assert history.waiting() == [] and history.it.approvals[name].revoked == "left"
    assert word(history.say(approval=name)) == "revoked"


def test_an_ended_run_is_decided_on_no_more() -> None:
    """The end takes back what was open, with its deadline."""
    history = reported()
    history.give(Cancel("enough"), person=True)
    assert [a.revoked for a in history.it.approvals.values()] == ["closed"] and history.timers() == []
    assert word(history.say()) == "terminal"


def test_a_retry_goes_on_under_the_approval_that_was_given() -> None:
    """A failure after the approval costs nobody a second decision."""
    history = drafted()
    history.say()
    history.fail("post")
    (timer,) = history.timers()
    history.give(Retry(timer))
    assert history.it.state == "approved" and history.running() == ["post"]
    (approval,) = history.it.approvals
    assert usable(history, approval=approval, digest="sha-hello") == "usable"


def test_asking_for_the_same_again_keeps_what_waits() -> None:
    """Another digest for the same resource replaces it."""
    history = reported(REPORT, REPORT)
    assert history.waiting() == ["2.0"]
    other = reported(REPORT, replace(REPORT, digest="d2"))
    assert [a.revoked for a in other.it.approvals.values()] == ["replaced", None] and len(other.timers()) == 1


def test_the_kill_switch_turns_back_what_has_not_begun_to_send() -> None:
    """The relay's `continue` makes the run look again; the approval is gone and has to be given anew."""
    history = drafted()
    history.say()
    commits = len(history.stored)
    assert word(history.give(Continue(), world=FREE)) == "nothing_due"
    assert word(history.give(Continue())) == "nothing_due" and len(history.stored) == commits
    on = replace(FREE, policy=Policy(kill_switch=KillSwitch(on=True, by="eve")))
    assert needs(history.definition, [history.command(Continue())]) == {"policy"}
    assert accepted(history.give(Continue(), world=on))
    assert history.it.state == "ready" and len(history.waiting()) == 1
    assert word(history.give(Continue(), world=on)) == "nothing_due"


def test_only_what_needs_them_has_aggregates_read() -> None:
    """The plain walk reads none: each costs a read from the leader."""
    plain = reported()
    assert needs(plain.definition, [plain.command(Continue()), Completed("2.0", ())]) == frozenset()
    assert needs(plain.definition, [Completed("2.0", (), contracts=(REPORT,))]) == {"policy"}
    assert needs(plain.definition, [plain.command(approve(), person=True)]) == {"policy", "grants"}
