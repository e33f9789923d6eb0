"""People's commands through a walker: decisions on approvals, and what holds for all runs of a tenant."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
from tests.unit.walker.office import Office, until

from waybook.agents import Agent, Approvals, Decided, DecisionEvent, Event, StartEvent, StopEvent, step
from waybook.engine.aggregates.grants import grants_of
from waybook.engine.aggregates.keys import budget_key, grants_key, policy_key, thread_key
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.policy import policy_of
from waybook.engine.aggregates.requests import Asked, Reserve, SettleReservation
from waybook.engine.aggregates.thread import thread_of
from waybook.engine.inputs import Accepted
from waybook.engine.ports import PortUnavailable
from waybook.engine.run import Run
from waybook.events import audit
from waybook.events.command import Answer, StartPayload
from waybook.events.subjects import RunKey

KEY = RunKey("t", "asking", "r")


class Wanted(StartEvent, frozen=True, kw_only=True):
    """Somebody wants a report."""

    to: str = "board"
    within_s: float | None = None


class Report(Event, frozen=True, kw_only=True):
    """The report as it was written."""

    text: str


class Released(DecisionEvent, frozen=True, kw_only=True):
    """A person decided on the report."""

    decision: str
    by: str | None = None


class Done(StopEvent, frozen=True, kw_only=True):
    """The run is over."""

    by: str | None
    sent: bool


class Asking(Agent):
    """Writes a report, has it approved, sends it."""

    name = "asking"

    @step
    async def write(self, wanted: Wanted, approvals: Approvals) -> Report:
        report = Report(text=f"to {wanted.to}")
        approvals.request(
            "send",
            resource=f"mailto:{wanted.to}",
            params={"text": report.text},
            answer=Released,
            within_s=wanted.within_s,
        )
        return report

    @step
    async def send(self, released: Released, report: Report) -> Done:
        return Done(by=released.by, sent=released.decision == "approved")


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


def it(office: Office) -> Run:
    run = office.run(KEY)
    assert run is not None
    return run


async def waiting(office: Office, **fields: Any) -> None:
    """A run of Asking that waits for its approval, with a walker beside it."""
    await office.process("one", Asking)
    body = msgspec.Raw(msgspec.json.encode(Wanted(**fields)))
    await office.give("start", StartPayload(event="Wanted", body=body), id="s", key=KEY)
    await until(lambda: (run := office.run(KEY)) is not None and bool(run.approvals))


async def told(office: Office, verb: str, payload: Any, *, id: str, key: RunKey = KEY) -> Answer:
    """Gives a command and waits for its answer."""
    await office.give(verb, payload, id=id, key=key)
    await until(lambda: f"_INBOX.{id}" in office.replies.answers)
    return office.answer(id)


def audited(office: Office) -> list[audit.AuditRecord]:
    return [audit.decode_record(payload) for payload in office.notes.audited.values()]


async def test_a_run_waits_without_a_body_and_goes_on_with_the_decision(office: Office) -> None:
    """While it waits nothing is held: no command, no lease; the decision's commit begins the next step."""
    await waiting(office)
    await until(lambda: not office.commands.waiting)
    assert office.processes[0].heartbeat.held == 0
    assert (await told(office, "approve", None, id="yes")).ok
    await until(lambda: it(office).outcome == "completed")
    run = office.run(KEY)
    assert run is not None
    assert msgspec.json.decode(run.log[-1].payload) == {"by": "p", "sent": True}


async def test_an_empty_process_takes_the_decision_up(office: Office) -> None:
    """The process that asked is gone; another that knows nothing goes on."""
    await waiting(office)
    await office.processes[0].kill()
    await office.process("two", Asking)
    assert (await told(office, "approve", None, id="yes")).ok
    await until(lambda: it(office).outcome == "completed")


async def test_refused_decisions_leave_the_state_and_stand_in_auditin(office: Office) -> None:
    """Double, foreign, changed: each is answered with its reason, and the attempt is recorded."""
    await waiting(office)
    assert (await told(office, "approve", {"digest": "other"}, id="c1")).reason == "changed"
    assert (await told(office, "approve", {"approval": "9.9"}, id="c2")).reason == "unknown_approval"
    version = it(office).version
    await told(office, "grants", {"person": "p", "may": ["grants"]}, id="g", key=grants_key("t"))
    assert (await told(office, "approve", None, id="c3")).reason == "not_permitted"
    assert it(office).version == version
    await told(office, "grants", {"person": "p", "may": ["grants", "decide"]}, id="g2", key=grants_key("t"))
    assert (await told(office, "reject", {"reason": "no"}, id="c4")).ok
    answer = await told(office, "approve", {"approval": next(iter(it(office).approvals))}, id="c5")
    assert answer.reason in ("already_decided", "terminal")
    records = [r for r in audited(office) if isinstance(r, audit.CommandRefused)]
    assert [(r.command, r.reason, r.actor, r.issuer) for r in records][:3] == [
        ("c1", "changed", "p", "cli"), ("c2", "unknown_approval", "p", "cli"), ("c3", "not_permitted", "p", "cli"),
    ]  # fmt: skip


async def test_nobody_may_stand_in_for_the_engine(office: Office) -> None:
    """An answer to an approval cannot be signalled, and the relay decides nothing."""
    await waiting(office)
    signalled = {"event": "Released", "body": {"decision": "approved", "by": "eve"}}
    assert (await told(office, "signal", signalled, id="c1")).reason == "invalid_input"
    assert it(office).log[-1].event != "Released"


async def test_the_kill_switch_and_the_policy_are_answered_and_stored(office: Office) -> None:
    """One commit each on `@policy`; a repeated command is applied once; nonsense is rejected."""
    await office.process("one", Asking)
    key = policy_key("t")
    assert (await told(office, "kill-switch", {"on": True, "reason": "odd"}, id="k1", key=key)).ok
    again = await told(office, "kill-switch", {"on": True}, id="k2", key=key)
    assert again.ok and again.already
    assert (await told(office, "policy", {"values": {"cap": 3}}, id="k3", key=key)).version == 2
    policy = policy_of(office.run(key))
    assert (policy.kill_switch.on, policy.kill_switch.by, policy.version, policy.values) == (True, "p", 1, {"cap": 3})
    assert (await told(office, "policy", {"values": "x"}, id="k4", key=key)).reason == "invalid_input"
    assert (await told(office, "dance", {}, id="k5", key=key)).reason == "invalid_input"
    other = RunKey("t", "@policy", "other")
    assert (await told(office, "kill-switch", {"on": True}, id="k6", key=other)).reason == "invalid_input"
    assert office.run(other) is None


async def test_a_thread_is_closed_by_a_person(office: Office) -> None:
    await office.process("one", Asking)
    key = thread_key("t", "t1")
    assert (await told(office, "thread", {"status": "resolved"}, id="k1", key=key)).ok
    assert thread_of(office.run(key)).status == "resolved"


async def test_commands_to_aggregates_survive_a_server_that_is_away(office: Office) -> None:
    """The command stays in COMMANDS until it was answered; it is applied once."""
    await office.process("one", Asking)
    office.state.faults.away()
    await office.give("kill-switch", {"on": True}, id="k1", key=policy_key("t"))
    await office.give("grants", {"person": "ann", "may": ["*"]}, id="g1", key=grants_key("t"))
    await until(lambda: office.processes[0].walker.problem is not None)
    office.state.faults.back()
    await until(lambda: {"_INBOX.g1", "_INBOX.k1"} <= set(office.replies.answers))
    assert grants_of(office.run(grants_key("t"))).people == {"ann": ("*",)}
    assert office.answer("g1").ok and (office.answer("k1").ok or office.answer("k1").reason == "not_permitted")
    await until(lambda: not office.commands.waiting)


async def test_reservations_of_two_processes_never_exceed_the_cap(office: Office) -> None:
    """Each merges what waits for one ledger; conflicts are decided again."""
    one, two = await office.process("one", Asking), await office.process("two", Asking)
    key, expires = budget_key("t", "send", office.clock.now()), office.clock.now() + 60_000

    def reserve(process: Any, number: int) -> Any:
        body = Reserve("r", f"e{number}", 10, expires)
        return process.walker.aggregates.ask(key, Asked(body))

    answers = await asyncio.gather(*(reserve((one, two)[n % 2], n // 2) for n in range(60)))
    assert ledger_of(office.run(key)).taken(office.clock.now()) == 10
    granted = {n // 2 for n, a in enumerate(answers) if getattr(a.outcome, "reason", "accepted") != "cap_reached"}
    assert len(granted) == 10
    settled = await one.walker.aggregates.ask(key, Asked(SettleReservation("r", f"e{min(granted)}", "released")))
    assert settled.outcome == Accepted()
    assert (await reserve(two, 29)).outcome == Accepted() or 29 in granted
    commits = [r for r in office.state.records if "@budget" in r.subject]
    assert len(commits) < 30, "what waits together is stored together"


async def test_whoever_waits_is_told_when_the_server_refuses(office: Office) -> None:
    one = await office.process("one", Asking)
    office.state.faults.away()
    key = budget_key("t", "send", office.clock.now())
    with pytest.raises(PortUnavailable):
        await one.walker.aggregates.look(key)
    office.state.faults.back()
    assert await one.walker.aggregates.look(key) is None


def test_the_ready_made_answer_is_an_event_of_the_engine() -> None:
    """`Decided` has what a step needs to know, and only the engine makes it."""
    assert issubclass(Decided, DecisionEvent)
    keep: Callable[..., Any] = Decided
    assert keep(approval="1.0", decision="expired").by is None
