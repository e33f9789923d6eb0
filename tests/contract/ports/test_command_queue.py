"""CommandQueue: what every adapter keeps."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest
from tests.contract.ports.adapters_under_test import ACK_WAIT_S, Ports

from waybook.engine.ports import CTL_ANY, NEW_ANY, Delivery, Outgoing, PortMisconfigured, lane_consumer

START = "cmd.new.any.cli.test.inbox.r{}.start"
APPROVE = "cmd.ctl.any.gw.test.inbox.r{}.approve"
WAIT_S = 5 * ACK_WAIT_S


async def one(ports: Ports, consumer: str = "new_any") -> Delivery:
    """The next delivery."""
    [delivery] = await ports.queue.pull(consumer, 1, WAIT_S)
    return delivery


@pytest.fixture
def first() -> str:
    """The id of the start that waits; no other test's, since ids are remembered."""
    return f"c1-{uuid4().hex}"


@pytest.fixture
async def started(ports: Ports, first: str) -> Ports:
    """Ports with the consumers and one waiting start."""
    await ports.queue.ensure_consumers((CTL_ANY, NEW_ANY))
    assert await ports.queue.publish(START.format(1), b'{"id":"c1"}', command=first, headers={"Waybook-Reply": "_R.1"})
    return ports


async def test_a_command_is_delivered_as_it_was_published(started: Ports, first: str) -> None:
    delivery = await one(started)
    assert (delivery.subject, delivery.payload) == (START.format(1), b'{"id":"c1"}')
    assert delivery.headers["Waybook-Reply"] == "_R.1"
    assert delivery.headers["Nats-Msg-Id"] == first
    assert delivery.received_at > 1_700_000_000_000
    assert (delivery.claim.sequence, delivery.claim.delivery) == (1, 1)


async def test_an_id_is_stored_once(started: Ports, first: str) -> None:
    assert not await started.queue.publish(START.format(1), b"again", command=first)
    assert len(await started.queue.pull("new_any", 10, 0.2)) == 1


async def test_a_pull_takes_all_that_is_there_up_to_its_batch(started: Ports) -> None:
    for i in range(2, 8):
        await started.queue.publish(START.format(i), b"{}", command=f"c{i}")
    assert len(await started.queue.pull("new_any", 5, WAIT_S)) == 5
    assert len(await started.queue.pull("new_any", 5, WAIT_S)) == 2


async def test_a_pull_waits_for_the_first_command_and_is_empty_when_none_comes(started: Ports) -> None:
    assert await started.queue.pull("ctl_any", 5, 0.1) == []
    waiting = asyncio.create_task(_pull_one(started, "ctl_any"))
    await asyncio.sleep(0)
    await started.queue.publish(APPROVE.format(1), b"{}", command="a1")
    assert (await waiting).subject == APPROVE.format(1)


async def _pull_one(ports: Ports, consumer: str) -> Delivery:
    return await one(ports, consumer)


async def test_classes_and_lanes_have_consumers_of_their_own(started: Ports) -> None:
    lane = lane_consumer("d" * 26)
    await started.queue.ensure_consumers((lane,))
    await started.queue.publish(f"cmd.ctl.{'d' * 26}.gw.test.inbox.r1.cancel", b"{}", command="x1")
    await started.queue.publish(APPROVE.format(1), b"{}", command="a1")
    assert (await one(started, lane.name)).subject.endswith(".cancel")
    assert (await one(started, "ctl_any")).subject.endswith(".approve")
    assert (await one(started, "new_any")).subject.endswith(".start")


async def test_what_is_not_acknowledged_comes_again_with_a_larger_claim(started: Ports) -> None:
    first = await one(started)
    await started.lapse()
    second = await one(started)
    assert second.payload == first.payload
    assert second.claim > first.claim
    assert second.claim.delivery == 2


async def test_a_consumer_is_taken_while_a_pull_waits_or_a_delivery_is_out(ports: Ports) -> None:
    lane = lane_consumer("abcdef0123456789")
    assert not await ports.queue.is_taken(lane.name), "it is not there"
    await ports.queue.ensure_consumers((lane,))
    assert not await ports.queue.is_taken(lane.name)
    pull = asyncio.create_task(ports.queue.pull(lane.name, 1, 5.0))
    await until(lambda: ports.queue.is_taken(lane.name))
    await ports.queue.publish("cmd.new.abcdef0123456789.cli.test.inbox.r1.start", b"{}", command="c1")
    [delivery] = await pull
    assert await ports.queue.is_taken(lane.name)
    await delivery.ack()
    await until(lambda: _is_left(ports, lane.name))


async def _is_left(ports: Ports, consumer: str) -> bool:
    return not await ports.queue.is_taken(consumer)


async def test_what_is_acknowledged_is_gone(started: Ports) -> None:
    delivery = await one(started)
    assert await started.queue.holds(delivery.claim.sequence)
    await delivery.ack()
    await until(lambda: _gone(started, delivery))
    await started.lapse()
    assert await started.queue.pull("new_any", 1, 0.3) == []


async def test_a_lease_that_is_renewed_does_not_lapse(started: Ports) -> None:
    delivery = await one(started)
    for _ in range(3):
        await asyncio.sleep(ACK_WAIT_S / 2)
        await delivery.in_progress()
    assert await started.queue.pull("new_any", 1, 0.1) == []


async def test_what_is_given_back_comes_again_at_once_or_after_its_delay(started: Ports) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await (await one(started)).nak()
    second = await one(started)
    assert loop.time() - began < ACK_WAIT_S
    await second.nak(0.3)
    assert await started.queue.pull("new_any", 1, 0.1) == []
    await started.lapse()
    assert (await one(started)).claim.delivery == 3


async def test_what_is_terminated_is_gone(started: Ports) -> None:
    delivery = await one(started)
    await delivery.term("refused: unknown agent")
    await until(lambda: _gone(started, delivery))


async def test_a_consumer_made_anew_delivers_at_once_with_a_larger_claim(started: Ports) -> None:
    first = await one(started)
    await started.lapse()
    second = await one(started)
    await started.queue.ensure_consumers((NEW_ANY,), recreate=True)
    third = await one(started)
    assert third.claim.delivery == 1
    assert first.claim < second.claim < third.claim


async def test_consumers_that_are_there_are_left_alone(started: Ports) -> None:
    first = await one(started)
    await started.queue.ensure_consumers((CTL_ANY, NEW_ANY))
    await started.lapse()
    second = await one(started)
    assert second.claim.consumer_created == first.claim.consumer_created


async def test_verbs_of_an_old_delivery_are_honoured(started: Ports) -> None:
    old = await one(started)
    await started.lapse()
    new = await one(started)
    await old.ack()
    await until(lambda: _gone(started, new))


async def test_a_consumer_nobody_made_is_a_misconfiguration(ports: Ports) -> None:
    with pytest.raises(PortMisconfigured, match="lane_none"):
        await ports.queue.pull("lane_none", 1, 0.1)


async def test_many_are_published_at_once_and_each_id_only_once(ports: Ports) -> None:
    await ports.queue.ensure_consumers((NEW_ANY,))
    await ports.queue.publish(START.format(7), b"{}", command="c7")
    messages = [Outgoing(START.format(i), b"{}", f"c{i}") for i in range(300)]
    stored = await ports.queue.publish_many(messages)
    assert stored == [i != 7 for i in range(300)]
    assert await ports.queue.publish_many(messages) == [False] * 300
    taken = await ports.queue.pull("new_any", 400, WAIT_S)
    assert len(taken) == 300


async def test_an_id_twice_in_one_bulk_is_stored_once(ports: Ports) -> None:
    messages = [Outgoing(START.format(1), b"{}", "c1"), Outgoing(START.format(1), b"{}", "c1")]
    assert list(await ports.queue.publish_many(messages)) == [True, False]


async def _gone(ports: Ports, delivery: Delivery) -> bool:
    return not await ports.queue.holds(delivery.claim.sequence)


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = 5.0) -> None:
    """Waits for a condition that others make true."""
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
