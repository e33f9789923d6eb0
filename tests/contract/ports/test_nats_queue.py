"""The work queue, the heartbeat and the objects on NATS: restarts, silence, other people's tools."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest
from tests.contract.ports.adapters_under_test import ACK_WAIT_S, installed
from tests.contract.ports.proxy import Proxy

from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.delivery import ack_fields
from waybook.adapters.nats.heartbeat import NatsHeartbeat
from waybook.adapters.nats.notes import NatsNotes
from waybook.adapters.nats.objects import NatsObjects
from waybook.adapters.nats.settings import NatsSettings
from waybook.engine.ports import LANE_IDLE_S, NEW_ANY, Outgoing, PortMisconfigured, PortUnavailable, lane_consumer
from waybook.events.errors import InvalidInput
from waybook.testing.servers import NatsUnderTest

START = "cmd.new.any.cli.test.inbox.r{}.start"


async def soon(condition: Callable[[], Awaitable[bool]], within_s: float = 10.0) -> None:
    """Waits for a condition that others make true; a server that is away is not yet."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                if await condition():
                    return
            except PortUnavailable:
                pass
            await asyncio.sleep(0.02)


@pytest.fixture
async def queue(connection: Connection) -> NatsCommandQueue:
    """A queue with its consumer and one start."""
    made = NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S)
    await made.ensure_consumers((NEW_ANY,))
    await made.publish(START.format(1), b"{}", command="c1")
    return made


async def test_the_consumer_of_a_lane_vanishes_when_nobody_pulls_for_a_week(connection: Connection) -> None:
    """Definitions come and go; the commands in the lane stay. The others never vanish."""
    made = NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S)
    lane = lane_consumer("abcdef0123456789")
    await made.ensure_consumers((NEW_ANY, lane))
    jetstream = connection.client.jetstream()
    infos = [await jetstream.consumer_info("COMMANDS", name) for name in (lane.name, NEW_ANY.name)]
    assert [info.config.inactive_threshold for info in infos] == [LANE_IDLE_S, None]


async def test_pulling_goes_on_after_a_restart_of_the_server(own_nats: NatsUnderTest) -> None:
    async with installed(own_nats.url) as connection:
        queue = NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S)
        await queue.ensure_consumers((NEW_ANY,))
        waiting = asyncio.create_task(_pull_for(queue, 20.0))
        await asyncio.sleep(0.1)
        await own_nats.kill()
        with pytest.raises(PortUnavailable):
            await waiting
        await own_nats.restart()
        await soon(lambda: queue.publish(START.format(1), b"{}", command="c1"))
        assert await _pull_for(queue, 5.0) == 1


async def _pull_for(queue: NatsCommandQueue, timeout_s: float) -> int:
    return len(await queue.pull("new_any", 10, timeout_s))


async def test_a_server_that_falls_silent_ends_a_pull_before_its_time(
    clean_nats: NatsUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy(clean_nats.url) as proxy, installed(proxy.url, request_timeout_s=0.3) as connection:
        monkeypatch.setattr("waybook.adapters.nats.pull.HEARTBEAT_S", 0.2)
        queue = NatsCommandQueue(connection)
        await queue.ensure_consumers((NEW_ANY,))
        assert await _pull_for(queue, 0.05) == 0
        proxy.deaf = True
        began = time.monotonic()
        with pytest.raises(PortUnavailable, match="new_any"):
            await queue.pull("new_any", 1, 60.0)
        assert time.monotonic() - began < 10.0


async def test_a_consumer_that_is_deleted_is_made_again(queue: NatsCommandQueue, connection: Connection) -> None:
    [first] = await queue.pull("new_any", 1, 5.0)
    waiting = asyncio.create_task(_pull_for(queue, 5.0))
    await asyncio.sleep(0.05)
    await connection.client.jetstream().delete_consumer("COMMANDS", "new_any")
    assert await waiting == 1
    await connection.client.jetstream().delete_consumer("COMMANDS", "new_any")
    [third] = await queue.pull("new_any", 1, 5.0)
    assert third.claim > first.claim


async def test_a_consumer_made_anew_behind_our_back_never_gives_an_old_claim(
    queue: NatsCommandQueue, connection: Connection, clean_nats: NatsUnderTest
) -> None:
    [first] = await queue.pull("new_any", 1, 5.0)
    async with await Connection.open(NatsSettings(servers=(clean_nats.url,))) as other:
        await NatsCommandQueue(other, ack_wait_s=ACK_WAIT_S).ensure_consumers((NEW_ANY,), recreate=True)
    [second] = await queue.pull("new_any", 1, 5.0)
    assert second.claim > first.claim


async def test_what_a_cancelled_pull_was_sent_is_not_lost(queue: NatsCommandQueue) -> None:
    await (await queue.pull("new_any", 1, 5.0))[0].ack()
    pulling = asyncio.create_task(_pull_for(queue, 5.0))
    await asyncio.sleep(0.05)
    pulling.cancel()
    await queue.publish(START.format(2), b"{}", command="c2")
    [delivery] = await queue.pull("new_any", 1, 0.5)
    assert (delivery.subject, delivery.claim.delivery) == (START.format(2), 1)


async def test_what_a_cancelled_pull_was_sent_can_be_given_back_at_the_end(
    queue: NatsCommandQueue, clean_nats: NatsUnderTest
) -> None:
    await (await queue.pull("new_any", 1, 5.0))[0].ack()
    pulling = asyncio.create_task(_pull_for(queue, 5.0))
    await asyncio.sleep(0.05)
    pulling.cancel()
    await queue.publish(START.format(2), b"{}", command="c2")

    async def given_back() -> bool:
        return await queue.give_back() == 1

    await soon(given_back)
    async with await Connection.open(NatsSettings(servers=(clean_nats.url,))) as other:
        [delivery] = await NatsCommandQueue(other).pull("new_any", 1, 0.5)
        assert delivery.claim.delivery == 2


async def test_a_command_too_large_for_the_server_is_refused_before_it_is_sent(queue: NatsCommandQueue) -> None:
    large = b"x" * 1_100_000
    with pytest.raises(InvalidInput, match="object bucket"):
        await queue.publish(START.format(2), large, command="c2")
    with pytest.raises(InvalidInput, match="object bucket"):
        await queue.publish_many([Outgoing(START.format(i), large, f"c{i}") for i in range(2, 4)])
    assert await queue.publish(START.format(2), b"{}", command="c2")


async def test_two_processes_share_a_consumer(queue: NatsCommandQueue, clean_nats: NatsUnderTest) -> None:
    async def take(part: NatsCommandQueue) -> list[str]:
        taken = []
        for delivery in await part.pull("new_any", 1, 0.7):
            await delivery.ack()
            taken.append(delivery.subject)
        return taken

    async with await Connection.open(NatsSettings(servers=(clean_nats.url,))) as other:
        await queue.publish(START.format(2), b"{}", command="c2")
        taken = await asyncio.gather(take(queue), take(NatsCommandQueue(other)))
        assert sorted(taken[0] + taken[1]) == [START.format(1), START.format(2)]


def test_ack_subjects_of_both_versions_are_read() -> None:
    assert ack_fields(b"$JS.ACK.COMMANDS.new_any.3.17.42.1796051081535764354.4") == (17, 3, 42, 1796051081535764354)
    second = b"$JS.ACK._.hash.COMMANDS.new_any.3.17.42.1796051081535764354.4.random"
    assert ack_fields(second) == (17, 3, 42, 1796051081535764354)


# -- heartbeat


@pytest.fixture
async def beating(clean_nats: NatsUnderTest) -> AsyncIterator[NatsHeartbeat]:
    """A heartbeat for leases of a second."""
    heartbeat = NatsHeartbeat(NatsSettings(servers=(clean_nats.url,)), ACK_WAIT_S, lambda: None)
    await asyncio.to_thread(heartbeat.start)
    yield heartbeat
    await asyncio.to_thread(heartbeat.stop)


async def test_leases_are_renewed_while_the_main_loop_is_stuck(queue: NatsCommandQueue, beating: NatsHeartbeat) -> None:
    [delivery] = await queue.pull("new_any", 1, 5.0)
    beating.hold(delivery.ack_subject, (time.time_ns() // 1_000_000) + 60_000)
    time.sleep(2.2 * ACK_WAIT_S)  # noqa: ASYNC251 - user code that holds the loop up
    assert await queue.pull("new_any", 1, 0.1) == []
    beating.drop(delivery.ack_subject)
    [again] = await queue.pull("new_any", 1, 5.0)
    assert again.claim > delivery.claim


async def test_a_lease_is_not_renewed_past_its_end(queue: NatsCommandQueue, beating: NatsHeartbeat) -> None:
    [delivery] = await queue.pull("new_any", 1, 5.0)
    beating.hold(delivery.ack_subject, (time.time_ns() // 1_000_000) + 300)
    assert len(await queue.pull("new_any", 1, 5.0)) == 1


async def test_a_lease_is_broken_when_it_is_not_held_or_not_renewed_in_time(
    own_nats: NatsUnderTest,
) -> None:
    """It is told by the clock, also when the heartbeat itself had no time to notice."""
    async with installed(own_nats.url) as connection:
        queue = NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S)
        await queue.ensure_consumers((NEW_ANY,))
        await queue.publish(START.format(1), b"{}", command="c1")
        heartbeat = NatsHeartbeat(NatsSettings(servers=(own_nats.url,)), ACK_WAIT_S, lambda: None)
        await asyncio.to_thread(heartbeat.start)
        [delivery] = await queue.pull("new_any", 1, 5.0)
        assert heartbeat.is_broken(delivery.ack_subject)
        heartbeat.hold(delivery.ack_subject, (time.time_ns() // 1_000_000) + 60_000)
        assert not heartbeat.is_broken(delivery.ack_subject)
        time.sleep(1.5 * ACK_WAIT_S)  # noqa: ASYNC251 - user code that holds the loop up
        assert not heartbeat.is_broken(delivery.ack_subject)
        own_nats.pause()
        try:
            await soon(partial(_is, heartbeat.is_broken, delivery.ack_subject))
        finally:
            own_nats.resume()
        await asyncio.to_thread(heartbeat.stop)


async def _is(condition: Callable[[str], bool], ack_subject: str) -> bool:
    return condition(ack_subject)


async def test_a_clock_that_jumps_ahead_lets_no_lease_lapse(
    beating: NatsHeartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that runs is not begun again elsewhere because the machine's clock was set; when its time is over, it ends."""
    beating.hold("$JS.ACK.COMMANDS.new_any.1.1.1.1.0", (time.time_ns() // 1_000_000) + 600_000)
    beating.hold("$JS.ACK.COMMANDS.new_any.1.2.2.2.0", (time.time_ns() // 1_000_000) + 100)
    three_hours_on = time.time() + 3 * 3600
    monkeypatch.setattr(time, "time", lambda: three_hours_on)
    monkeypatch.setattr(time, "time_ns", lambda: round(three_hours_on * 1e9))
    await soon(partial(_is, lambda _: beating.held == 1, ""))
    await asyncio.sleep(ACK_WAIT_S / 3)  # one more renewal
    assert not beating.is_broken("$JS.ACK.COMMANDS.new_any.1.1.1.1.0")


async def test_a_server_away_for_longer_than_a_lease_ends_all_claims(own_nats: NatsUnderTest) -> None:
    lost = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_lost() -> None:
        loop.call_soon_threadsafe(lost.set)

    heartbeat = NatsHeartbeat(NatsSettings(servers=(own_nats.url,)), 0.4, on_lost)
    await asyncio.to_thread(heartbeat.start)
    heartbeat.hold("$JS.ACK.COMMANDS.new_any.1.1.1.1.0", (time.time_ns() // 1_000_000) + 60_000)
    own_nats.pause()
    try:
        await asyncio.wait_for(lost.wait(), 5.0)
        assert heartbeat.held == 0
    finally:
        own_nats.resume()
        await asyncio.to_thread(heartbeat.stop)


async def test_a_heartbeat_without_a_server_does_not_start() -> None:
    heartbeat = NatsHeartbeat(NatsSettings(servers=("nats://127.0.0.1:1",)), 1.0, lambda: None)
    with pytest.raises(PortUnavailable):
        await asyncio.to_thread(heartbeat.start, wait_s=0.1)


# -- objects and notes


async def test_objects_can_be_read_and_written_by_the_tools_of_nats(connection: Connection) -> None:
    objects = NatsObjects(connection)
    data = os.urandom(300_000)
    await objects.put("ours", data)
    store = await connection.client.jetstream().object_store("artifacts")
    assert (await store.get("ours")).data == data
    await store.put("theirs", data)
    assert await objects.get("theirs") == data
    await store.delete("ours")
    with pytest.raises(KeyError):
        await objects.get("ours")


async def test_the_chunks_of_an_object_that_is_written_again_are_removed(connection: Connection) -> None:
    objects = NatsObjects(connection)
    await objects.put("name", os.urandom(300_000))
    await objects.put("name", os.urandom(200_000))
    info = await connection.client.jetstream().stream_info("OBJ_artifacts")
    assert info.state.messages == 2 + 1  # two chunks and the entry


async def test_a_bucket_that_is_not_there_is_a_misconfiguration(connection: Connection) -> None:
    with pytest.raises(PortMisconfigured):
        await NatsObjects(connection, "nowhere").put("name", b"data")


async def test_traces_wait_a_moment_for_a_slow_server_and_are_dropped_for_one_that_stands_still(
    connection: Connection, clean_nats: NatsUnderTest
) -> None:
    """What is not sent stays bounded, the wait is one for all, and a server that reads again gets traces again."""
    notes = NatsNotes(connection, waits_s=0.2)
    sent, began = 0, time.monotonic()
    clean_nats.pause()
    try:
        while sent < 200 and connection.unsent < 6 * 1024 * 1024:
            await notes.trace("test", "display.talk.r1", b"x" * 500_000)
            await asyncio.sleep(0)
            sent += 1
    finally:
        clean_nats.resume()
    assert sent == 200
    assert time.monotonic() - began < 5.0

    async def is_taken() -> bool:
        """Whether the server takes traces again."""
        await notes.trace("test", "display.talk.r2", b"{}")
        found = await connection.client.jetstream().stream_info("TRACE", subjects_filter="trace.test.display.talk.r2")
        return bool(found.state.subjects)

    await soon(is_taken)


async def test_notes_stand_in_their_streams(connection: Connection) -> None:
    notes = NatsNotes(connection)
    for _ in range(2):
        await notes.audit("test", "record1", b"{}")
        await notes.trace("test", "late_result", b"{}")
        headers = {"Nats-Msg-Id": "c1", "Waybook-Reason": "killed its worker", "Nats-Expected-Stream": "COMMANDS"}
        await notes.bury("cmd.ctl.any.gw.test.inbox.r1.approve", b"{}", headers)
    stream = connection.client.jetstream()

    async def traced() -> bool:
        """Traces are stored without a word, some time later."""
        return (await stream.stream_info("TRACE")).state.messages == 2

    await soon(traced)
    assert [(await stream.stream_info(name)).state.messages for name in ("AUDITIN", "DEAD")] == [1, 1]
    buried = await stream.get_last_msg("DEAD", "dead.cmd.ctl.any.gw.test.inbox.r1.approve")
    assert buried.headers is not None
    assert buried.headers["Waybook-Reason"] == "killed its worker"
