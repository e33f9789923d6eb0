"""Acknowledging in bulk on a real server: what is done goes, and nothing else."""

import asyncio
from collections.abc import Sequence

import pytest
from nats.aio.msg import Msg
from tests.contract.ports.adapters_under_test import ACK_WAIT_S, installed
from tests.contract.ports.proxy import Proxy

from waybook.adapters.nats import bulk_ack
from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.delivery import NatsDelivery
from waybook.adapters.nats.settings import NatsSettings
from waybook.engine.ports import CTL_ANY, NEW_ANY, Outgoing, PortUnavailable
from waybook.testing.servers import NatsUnderTest

START = "cmd.new.any.cli.test.inbox.r{}.start"
APPROVE = "cmd.ctl.any.gw.test.inbox.r{}.approve"
MANY = 60


class Purges:
    """Counts the purges that a server is asked for, and how many messages stand in COMMANDS."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.asked: list[bytes] = []

    async def listen(self) -> None:
        await self.connection.client.subscribe("$JS.API.STREAM.PURGE.COMMANDS", cb=self._hear)
        await self.connection.client.flush()

    async def _hear(self, message: Msg) -> None:
        self.asked.append(message.data)

    async def standing(self) -> list[str]:
        info = await self.connection.client.jetstream().stream_info("COMMANDS", subjects_filter=">")
        return sorted(info.state.subjects or {})

    async def until(self, subjects: Sequence[str]) -> None:
        async with asyncio.timeout(10.0):
            while await self.standing() != sorted(subjects):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.02)


@pytest.fixture
async def queue(connection: Connection) -> NatsCommandQueue:
    """The queue of a sole owner, with many starts and one approval."""
    made = NatsCommandQueue(connection, ack_wait_s=60.0)
    await made.ensure_consumers((CTL_ANY, NEW_ANY), recreate=True)
    await made.publish_many([Outgoing(START.format(n), b"{}", f"s{n}") for n in range(MANY)])
    await made.publish(APPROVE.format(1), b"{}", command="a1")
    return made


@pytest.fixture
async def purges(connection: Connection) -> Purges:
    heard = Purges(connection)
    await heard.listen()
    return heard


async def taken(queue: NatsCommandQueue, count: int = MANY) -> list[NatsDelivery]:
    """So many deliveries of starts."""
    deliveries: list[NatsDelivery] = []
    while len(deliveries) < count:
        deliveries += await queue.pull("new_any", count - len(deliveries), 5.0)
    return deliveries


async def test_all_that_is_done_goes_at_once(queue: NatsCommandQueue, purges: Purges) -> None:
    """A few purges take sixty commands; the commands of the other consumer stay."""
    for delivery in await taken(queue):
        await delivery.ack()
    await purges.until([APPROVE.format(1)])
    assert 1 <= len(purges.asked) <= 3
    info = await purges.connection.client.jetstream().consumer_info("COMMANDS", "new_any")
    assert (info.num_ack_pending, info.num_pending) == (0, 0)


async def test_what_is_not_done_stays_and_what_is_done_behind_it_goes(queue: NatsCommandQueue, purges: Purges) -> None:
    deliveries = await taken(queue)
    for number, delivery in enumerate(deliveries):
        if number not in (20, 40):
            await delivery.ack()
    await purges.until([START.format(20), START.format(40), APPROVE.format(1)])
    await deliveries[20].nak()
    [again] = await queue.pull("new_any", 5, 5.0)
    assert (again.subject, again.claim.delivery) == (START.format(20), 2)
    await again.ack()
    await deliveries[40].term("of no use")
    await purges.until([APPROVE.format(1)])


async def test_what_was_given_back_or_never_delivered_is_not_purged(queue: NatsCommandQueue, purges: Purges) -> None:
    deliveries = await taken(queue, 30)
    await deliveries[0].nak(60.0)
    for delivery in deliveries[1:]:
        await delivery.ack()
    await purges.until([START.format(0), *(START.format(n) for n in range(30, MANY)), APPROVE.format(1)])


async def test_after_a_missed_delivery_all_are_acknowledged_one_by_one(
    queue: NatsCommandQueue, purges: Purges, clean_nats: NatsUnderTest
) -> None:
    """Somebody else who takes a delivery, though nobody should, loses nothing by that."""
    deliveries = await taken(queue, 10)
    async with await Connection.open(NatsSettings(servers=(clean_nats.url,))) as other:
        [stolen] = await NatsCommandQueue(other).pull("new_any", 1, 5.0)
        deliveries += await taken(queue, MANY - 11)
        for delivery in deliveries:
            await delivery.ack()
        await purges.until([stolen.subject, APPROVE.format(1)])
    assert purges.asked == []


async def test_nothing_is_purged_once_the_connection_was_lost(clean_nats: NatsUnderTest) -> None:
    """The server may have delivered what never arrived, and may have forgotten what it delivered."""
    async with Proxy(clean_nats.url) as proxy, installed(proxy.url, request_timeout_s=2.0) as connection:
        async with await Connection.open(NatsSettings(servers=(clean_nats.url,))) as other:
            purges = Purges(other)
            await purges.listen()
            queue = NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S)
            await queue.ensure_consumers((NEW_ANY,), recreate=True)
            await queue.publish_many([Outgoing(START.format(n), b"{}", f"l{n}") for n in range(MANY)])
            before = await taken(queue, 20)
            proxy.cut()
            async with asyncio.timeout(20.0):
                while await purges.standing():
                    try:
                        deliveries = await queue.pull("new_any", MANY, 2 * ACK_WAIT_S)
                    except PortUnavailable:
                        await asyncio.sleep(0.02)
                        continue
                    for delivery in [*before, *deliveries]:
                        await delivery.ack()
                    before = []
            assert purges.asked == []


async def test_a_refused_purge_is_made_good_one_by_one(queue: NatsCommandQueue, purges: Purges) -> None:
    """A server that lets nobody purge gets an acknowledgement of each."""
    jetstream = purges.connection.client.jetstream()
    config = (await jetstream.stream_info("COMMANDS")).config
    config.deny_purge = True
    await jetstream.update_stream(config)
    for delivery in await taken(queue):
        await delivery.ack()
    await purges.until([APPROVE.format(1)])
    assert len(purges.asked) == 1


async def test_a_few_wait_for_more_but_not_for_long(
    queue: NatsCommandQueue, purges: Purges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_ack, "MOST_WAIT_S", 0.1)
    made = NatsCommandQueue(purges.connection, ack_wait_s=60.0)
    await made.ensure_consumers((NEW_ANY,), recreate=True)
    for delivery in (await taken(made, MANY))[:3]:
        await delivery.ack()
    await purges.until([*(START.format(n) for n in range(3, MANY)), APPROVE.format(1)])
    assert purges.asked == []


async def test_at_the_end_everything_done_is_acknowledged(queue: NatsCommandQueue, purges: Purges) -> None:
    for delivery in (await taken(queue))[:5]:
        await delivery.ack()
    await queue.give_back()
    await purges.until([*(START.format(n) for n in range(5, MANY)), APPROVE.format(1)])
