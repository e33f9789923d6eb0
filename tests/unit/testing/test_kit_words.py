"""What the crash kit's words and other sides do, beside what whole walks show."""

from waybook.adapters.memory.clock import ManualClock
from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, Unsure
from waybook.testing.kit import OtherSide, approve, reject
from waybook.testing.kit.process_clock import ProcessClock

CALL = EffectCall("t.a.r", "k1", "mail", {}, "i1")


async def test_the_other_side_refuses_first_and_then_loses_its_answers() -> None:
    side = OtherSide(refusals=1, answers_lost=1, evidence={"message_id": "m1"})
    answers = [await side.call(CALL, Deadline(1000)) for _ in range(3)]
    assert [type(answer) for answer in answers] == [NotDone, Unsure, Done]
    assert side.arrived == {"k1": 2}
    assert answers[-1] == Done({"number": 2, "message_id": "m1"})
    assert await side.find(CALL) == Done({"found": True, "message_id": "m1"})


def test_decisions_are_a_persons_commands() -> None:
    yes, no = approve(reason="fine"), reject(approval="3.1", actor="ann")
    assert (yes.verb, yes.actor, yes.issuer, yes.payload.reason) == ("approve", "tester", "cli", "fine")
    assert (no.verb, no.actor, no.payload.approval) == ("reject", "ann", "3.1")


def test_a_processes_clock_jumps_for_a_time() -> None:
    server = ManualClock(10_000)
    clock = ProcessClock(server)
    clock.jump(-5_000, right_after_ms=1_000)
    assert clock.now() == 5_000
    server.advance(1_000)
    assert clock.now() == server.now()
