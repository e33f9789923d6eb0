"""Approvals with a deadline on a clock that is moved by hand, with a walker and a scheduler beside it (FB-40)."""

import msgspec
import pytest
from tests.unit.scheduler.plant import Plant
from tests.unit.walker.test_people_decide import Asking, Wanted

from waybook.agents.definition import define
from waybook.engine.hold import hold, why
from waybook.engine.run import Run
from waybook.events.command import StartPayload
from waybook.events.engine import ApprovalDecided, ApprovalRevoked
from waybook.events.subjects import RunKey

KEY = RunKey("main", "asking", "r1")
HOUR_S = 3_600
ASKING = define(Asking)


async def asked(plant: Plant) -> None:
    """A run that waits for an hour at most."""
    await plant.walk(Asking)
    plant.schedule()
    body = msgspec.Raw(msgspec.json.encode(Wanted(within_s=HOUR_S)))
    await plant.give("start", StartPayload(event="Wanted", body=body), KEY)
    await plant.until(lambda: plant.run(KEY) is not None and bool(it(plant).approvals) and not plant.notices.behind)


def it(plant: Plant) -> Run:
    run = plant.run(KEY)
    assert run is not None
    return run


async def test_nobody_decides_in_time(plant: Plant) -> None:
    """The run says so by itself at the deadline; what the next step gets is that nobody decided."""
    await asked(plant)
    assert hold(ASKING.engine, it(plant)).until == it(plant).approvals["2.0"].request.expires
    plant.clock.advance(HOUR_S * 1000 - 1)
    await plant.until(lambda: not plant.timers.due)
    assert it(plant).outcome is None
    plant.clock.advance(1)
    await plant.until(lambda: it(plant).outcome == "completed")
    assert msgspec.json.decode(it(plant).log[-1].payload) == {"by": None, "sent": False}
    assert [e.reason for e in plant.events(KEY) if isinstance(e, ApprovalRevoked)] == ["expired"]
    assert why(ASKING.engine, it(plant)).approvals == ()


@pytest.mark.parametrize(("before_ms", "sent"), [(1, True), (-1, False)])
async def test_just_before_and_just_after_the_deadline(plant: Plant, before_ms: int, sent: bool) -> None:
    """One is carried out, the other refused and leaves nothing; a decision and the deadline settle the run once."""
    await asked(plant)
    plant.clock.advance(HOUR_S * 1000 - before_ms)
    await plant.give("approve", None, KEY)
    await plant.until(lambda: it(plant).outcome == "completed", pass_ms=1)
    assert msgspec.json.decode(it(plant).log[-1].payload)["sent"] is sent
    decided = [e for e in plant.events(KEY) if isinstance(e, ApprovalDecided)]
    assert len(decided) == int(sent)
    assert [p.event for p in it(plant).log] == ["Wanted", "Report", "Released", "Done"]


async def test_a_decision_in_time_is_carried_out_by_a_walker_that_comes_late(plant: Plant) -> None:
    """The receipt of the command counts: the worker was away over the deadline, and no scheduler either."""
    walker = await plant.walk(Asking)
    body = msgspec.Raw(msgspec.json.encode(Wanted(within_s=HOUR_S)))
    await plant.give("start", StartPayload(event="Wanted", body=body), KEY)
    await plant.until(lambda: plant.run(KEY) is not None and bool(it(plant).approvals))
    await walker.stop()
    plant.clock.advance(HOUR_S * 1000 - 1)
    await plant.give("approve", None, KEY)
    plant.clock.advance(2 * HOUR_S * 1000)
    await plant.walk(Asking)
    await plant.until(lambda: it(plant).outcome == "completed")
    assert msgspec.json.decode(it(plant).log[-1].payload) == {"by": "p", "sent": True}
