"""Workers that pause past their lease, stop gracefully, or get a command twice."""

import asyncio
import signal
import time
from functools import partial

import pytest
from tests.crash.walks import Case, Walk, Worker, assert_walked_once, side_by_side, until, until_async
from tests.crash.worker import Fault, consumers

from waybook.engine.ports import PortUnavailable
from waybook.events.engine import ActionAbandoned, ActionReleased, LeaseRenewed, StepBegan
from waybook.testing.history import events_of
from waybook.testing.servers import NatsUnderTest


async def taken_over(walk: Walk, fault: Fault, *, held_in: str) -> tuple[Worker, Worker]:
    """A worker that stopped itself, and a second that took its walk over and now holds it in a body."""
    await walk.start()
    first = walk.worker(fault)
    await first.paused()
    gate = walk.gate(held_in)
    second = walk.worker()
    await until(
        lambda: any(line.pid == second.pid and f":{held_in}:" in line.execution for line in walk.journal()),
        "second runs",
    )
    assert gate.exists()
    return first, second


PAUSES = {
    "in-a-body": Fault("step.running", "pause", where="classify"),
    "result-there": Fault("step.ended", "pause", where="classify"),
    "before-an-append": Fault("append.before", "pause", nth=4, where="*.inbox.*"),
    "append-in-flight": Fault("append.sent", "pause", nth=4, where="*.inbox.*"),
    "before-a-body": Fault("step.begun", "pause", where="draft"),
}


async def a_worker_paused_past_its_lease_is_refused_and_silent(place: str, walk: Walk) -> None:
    first, second = await taken_over(walk, PAUSES[place], held_in="draft")
    before = walk.journal()
    first.signal(signal.SIGCONT)
    await until(lambda: bool(walk.said("claim_superseded")), "the first worker knows that it was superseded")

    assert await walk.commands_left() == 1, "the superseded worker acknowledged"
    await lease_passes()
    begun = [line for line in walk.journal()[len(before) :] if line.word == "begun" and line.pid == first.pid]
    assert begun == [] or place == "before-a-body"
    (walk.folder / "draft").unlink()
    history = await walk.until_done()
    assert_walked_once(walk, history)
    assert (await first.stop(), await second.stop()) == (0, 0)
    abandoned = [e for _, e in events_of(history) if isinstance(e, ActionAbandoned)]
    assert [(e.reason, e.failures) for e in abandoned] == [("lost", 1)]


async def lease_passes() -> None:
    """Waits one and a half leases: what a foreign nak or ack did would show by then."""
    end = time.monotonic() + 1.5
    await until(lambda: time.monotonic() > end, "a lease and a half passes")


async def a_worker_that_stops_gives_its_step_to_another_at_once_and_without_a_failure(walk: Walk) -> None:
    walk.ack_wait(60.0)
    gate = walk.gate("classify")
    await walk.start()
    first = walk.worker()
    await walk.until_body("classify")
    second = walk.worker()
    assert await first.stop() == 0
    gate.unlink()
    history = await walk.until_done()

    assert_walked_once(walk, history)
    events = [e for _, e in events_of(history)]
    assert not any(isinstance(e, ActionAbandoned) for e in events)
    assert [e.reason for e in events if isinstance(e, ActionReleased)] == ["stop"]
    assert await second.stop() == 0


async def an_owner_that_comes_back_does_not_wait_for_a_lease(walk: Walk) -> None:
    walk.ack_wait(60.0)
    await walk.start()
    assert await walk.worker(Fault("step.running", where="classify")).ended() == -signal.SIGKILL
    second = walk.worker(exclusive=True)

    assert_walked_once(walk, await walk.until_done())
    assert await second.stop() == 0


async def a_second_delivery_to_the_process_that_walks_renews_its_claim(walk: Walk) -> None:
    gate = walk.gate("classify")
    await walk.start()
    worker = walk.worker(Fault("step.running", "pause", where="classify"))
    await worker.paused()
    await lease_passes()
    worker.signal(signal.SIGCONT)
    await walk.until_version(
        lambda h: any(isinstance(e, LeaseRenewed) for _, e in events_of(h)), "the claim is renewed"
    )
    gate.unlink()

    history = await walk.until_done()
    assert_walked_once(walk, history)
    assert {e.attempt for _, e in events_of(history) if isinstance(e, StepBegan)} == {1}
    assert await worker.stop() == 0


async def a_walk_goes_on_when_its_consumer_is_made_anew(by: str, walk: Walk) -> None:
    gate = walk.gate("classify")
    await walk.start()
    worker = walk.worker()
    await walk.until_body("classify")
    await (recreate_consumers(walk) if by == "recreated" else delete_consumers(walk))
    await lease_passes()
    gate.unlink()

    history = await walk.until_done()
    assert_walked_once(walk, history)
    assert {e.attempt for _, e in events_of(history) if isinstance(e, StepBegan)} == {1}
    assert await worker.stop() == 0


async def recreate_consumers(walk: Walk) -> None:
    """Makes the consumers anew; the worker, which finds them missing, may do the same at that moment."""

    async def once() -> bool:
        try:
            await walk.wiring.commands.ensure_consumers(consumers(walk.tenant), recreate=True)
        except PortUnavailable:
            return False
        return True

    await until_async(once, "the consumers are made anew")


async def delete_consumers(walk: Walk) -> None:
    jetstream = walk.wiring.connection.client.jetstream()
    for consumer in consumers(walk.tenant):
        await jetstream.delete_consumer("COMMANDS", consumer.name)


CASES: dict[str, Case[None]] = {
    **{f"paused-{p}": partial(a_worker_paused_past_its_lease_is_refused_and_silent, p) for p in PAUSES},
    **{f"consumer-{by}": partial(a_walk_goes_on_when_its_consumer_is_made_anew, by) for by in ("recreated", "deleted")},
    "owner-returns": an_owner_that_comes_back_does_not_wait_for_a_lease,
    "stops": a_worker_that_stops_gives_its_step_to_another_at_once_and_without_a_failure,
    "second-delivery": a_second_delivery_to_the_process_that_walks_renews_its_claim,
}


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exception | None]:
    """All cases, run side by side."""
    return asyncio.run(side_by_side(nats_server, tmp_path_factory.mktemp("paused"), CASES))


@pytest.mark.parametrize("name", CASES)
def test_claims_hold(outcomes: dict[str, Exception | None], name: str) -> None:
    """Each case is a function of this module, whose name says its rule."""
    error = outcomes[name]
    if error is not None:
        raise error
