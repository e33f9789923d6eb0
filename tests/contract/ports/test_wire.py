"""What Wire uses of nats-py behind its public face: a release that changes it has to fail here."""

import asyncio
import importlib.metadata

from waybook.adapters.nats.wire import Wire
from waybook.testing.servers import NatsUnderTest


async def connected(url: str, losses: list[str], refusals: list[str]) -> Wire:
    """A wire to the server at `url`."""
    wire = Wire(lambda _, reason: losses.append(reason), refusals.append)
    await wire.connect(url, allow_reconnect=False)
    wire.attend()
    return wire


def test_the_release_that_the_private_members_were_read_in_is_installed() -> None:
    major, minor = importlib.metadata.version("nats-py").split(".")[:2]
    assert (int(major), int(minor)) >= (2, 16)
    assert int(major) == 2


async def test_frames_are_sent_and_messages_go_straight_to_their_sink(clean_nats: NatsUnderTest) -> None:
    losses: list[str] = []
    wire = await connected(clean_nats.url, losses, [])
    got: list[tuple[bytes, bytes, bytes | None, bytes]] = []
    wire.sink("a.*", lambda *message: got.append(message))
    wire.write(b"PUB a.1 3\r\none\r\n")
    wire.write(b"HPUB a.2 reply 18 21\r\nNATS/1.0\r\nA: b\r\n\r\ntwo\r\n")
    wire.flush_frames()
    await wire.flush()
    assert got == [(b"a.1", b"", None, b"one"), (b"a.2", b"reply", b"NATS/1.0\r\nA: b\r\n\r\n", b"two")]
    assert wire.unsent == 0
    await wire.end()
    assert losses == []
    assert not wire.usable


async def test_a_sink_that_was_given_up_gets_nothing_more(clean_nats: NatsUnderTest) -> None:
    wire = await connected(clean_nats.url, [], [])
    got: list[bytes] = []
    wire.sink("a", lambda *message: got.append(message[3]))
    wire.sink("b", lambda *message: got.append(message[3]))
    wire.write(b"PUB a 1\r\nx\r\n")
    wire.flush_frames()
    await wire.flush()
    wire.unsink("a")
    wire.unsink("never subscribed")
    wire.write(b"PUB a 1\r\ny\r\nPUB b 1\r\nz\r\n")
    wire.flush_frames()
    await wire.flush()
    assert got == [b"x", b"z"]
    await wire.end()


async def test_a_sink_that_fails_takes_nobody_else_down(clean_nats: NatsUnderTest) -> None:
    wire = await connected(clean_nats.url, [], [])
    got: list[bytes] = []
    wire.sink("bad", lambda *_: 1 / 0)  # type: ignore[arg-type]
    wire.sink("good", lambda *message: got.append(message[3]))
    wire.write(b"PUB bad 1\r\nx\r\nPUB good 1\r\ny\r\n")
    wire.flush_frames()
    await wire.flush()
    assert got == [b"y"]
    await wire.end()


async def test_requests_of_nats_py_still_work_beside_sinks(clean_nats: NatsUnderTest) -> None:
    wire = await connected(clean_nats.url, [], [])
    assert (await wire.jetstream().account_info()).streams == 0
    await wire.end()


async def test_the_end_of_the_server_is_told_once(own_nats: NatsUnderTest) -> None:
    losses: list[str] = []
    wire = await connected(own_nats.url, losses, [])
    await own_nats.kill()
    async with asyncio.timeout(5):
        while wire.usable:  # noqa: ASYNC110 - the test looks on
            await asyncio.sleep(0.01)
    await wire.end()
    assert len(losses) == 1


async def test_an_error_that_the_server_sends_is_a_loss(clean_nats: NatsUnderTest) -> None:
    losses: list[str] = []
    wire = await connected(clean_nats.url, losses, [])
    wire.write(b"NONSENSE\r\n")
    async with asyncio.timeout(5):
        while wire.usable:  # noqa: ASYNC110 - the test looks on
            await asyncio.sleep(0.01)
    await wire.end()
    assert losses == ["unknown protocol operation"]
