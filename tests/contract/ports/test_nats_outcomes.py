"""Appends on NATS: unknown outcomes, refusals of the server, what a stored commit looks like."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.contract.ports.adapters_under_test import STREAM, draft, installed
from tests.contract.ports.proxy import Proxy

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.frames import header_block
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.engine.ports import (
    AppendConflict,
    Draft,
    OutcomeUnknown,
    PortMisconfigured,
    PortUnavailable,
    Record,
    StreamFull,
)
from waybook.testing.servers import NatsUnderTest


class Doubtful:
    """A log behind a proxy, and a log that sees the server as it is."""

    def __init__(self, proxy: Proxy, log: NatsStateLog, direct: NatsStateLog) -> None:
        self.proxy = proxy
        self.log = log
        self.direct = direct

    async def history(self, run: str) -> list[Record]:
        """What is really stored."""
        return [r async for r in self.direct.history(draft(run, 0).subject)]

    async def until_stored(self, run: str, count: int = 1) -> None:
        """Waits for commits that the doubtful side may not know of."""
        async with asyncio.timeout(5):
            while len(await self.history(run)) < count:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)

    def mend(self) -> None:
        """Ends the doubt with a new connection."""
        self.proxy.deaf = self.proxy.mute = False
        self.proxy.cut()


@pytest.fixture
async def doubtful(connection: Connection, clean_nats: NatsUnderTest) -> AsyncIterator[Doubtful]:
    """See Doubtful."""
    async with Proxy(clean_nats.url) as proxy:
        settings = NatsSettings(servers=(proxy.url,), request_timeout_s=0.4)
        async with await Connection.open(settings) as behind:
            yield Doubtful(proxy, NatsStateLog(behind, STREAM), NatsStateLog(connection, STREAM))


async def test_a_commit_whose_answer_was_lost_is_found_and_not_stored_twice(doubtful: Doubtful) -> None:
    doubtful.proxy.deaf = True
    append = asyncio.ensure_future(doubtful.log.append(draft("r", 0)))
    await doubtful.until_stored("r")
    doubtful.mend()
    sequence = await append
    assert [r.sequence for r in await doubtful.history("r")] == [sequence]


async def test_a_commit_that_never_arrived_is_sent_again(doubtful: Doubtful) -> None:
    doubtful.proxy.mute = True
    append = asyncio.ensure_future(doubtful.log.append(draft("r", 0)))
    await asyncio.sleep(0.1)
    assert await doubtful.history("r") == []
    doubtful.mend()
    sequence = await append
    assert [r.sequence for r in await doubtful.history("r")] == [sequence]


async def test_silence_alone_is_an_unknown_outcome_too(doubtful: Doubtful) -> None:
    doubtful.proxy.deaf = True
    append = asyncio.ensure_future(doubtful.log.append(draft("r", 0)))
    await doubtful.until_stored("r")
    await asyncio.sleep(0.6)
    doubtful.proxy.deaf = False
    sequence = await append
    assert [r.sequence for r in await doubtful.history("r")] == [sequence]


async def test_a_commit_that_others_followed_while_it_was_in_doubt_is_its_own_success(doubtful: Doubtful) -> None:
    doubtful.proxy.deaf = True
    append = asyncio.ensure_future(doubtful.log.append(draft("r", 0)))
    await doubtful.until_stored("r")
    await doubtful.direct.append(draft("r", 1, "of another process"))
    doubtful.mend()
    assert await append == 1


async def test_a_commit_whose_place_was_taken_while_it_was_in_doubt_is_a_conflict(doubtful: Doubtful) -> None:
    doubtful.proxy.mute = True
    append = asyncio.ensure_future(doubtful.log.append(draft("r", 0)))
    await asyncio.sleep(0.1)
    await doubtful.direct.append(draft("r", 0, "of another process"))
    doubtful.mend()
    with pytest.raises(AppendConflict):
        await append


async def test_each_member_of_a_batch_in_doubt_is_looked_up_by_itself(doubtful: Doubtful) -> None:
    doubtful.proxy.deaf = True
    appends = [asyncio.ensure_future(doubtful.log.append(draft(f"r{i}", 0))) for i in range(40)]
    await doubtful.until_stored("r39")
    await doubtful.direct.append(draft("r0", 1, "of another process"))
    doubtful.mend()
    assert sorted(await asyncio.gather(*appends)) == list(range(1, 41))


async def test_a_bounded_append_gives_up_and_an_unbounded_one_goes_on(doubtful: Doubtful) -> None:
    doubtful.proxy.mute = True
    unbounded = asyncio.ensure_future(doubtful.log.append(draft("facts", 0)))
    with pytest.raises(OutcomeUnknown):
        await doubtful.log.append(draft("person", 0), tries=2)
    assert not unbounded.done()
    doubtful.mend()
    await unbounded


async def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(PortUnavailable, match=r"127\.0\.0\.1:1"):
        await Connection.open(NatsSettings(servers=("nats://127.0.0.1:1",)), wait_s=0)


async def test_appends_under_way_when_the_connection_is_closed_are_unknown(doubtful: Doubtful) -> None:
    doubtful.proxy.mute = True
    append = asyncio.ensure_future(doubtful.log.append(draft("r", 0)))
    await asyncio.sleep(0.05)
    await doubtful.log._connection.close()
    with pytest.raises(OutcomeUnknown):
        await append


async def test_a_server_that_stops_for_a_while_loses_and_doubles_nothing(own_nats: NatsUnderTest) -> None:
    async with installed(own_nats.url, request_timeout_s=0.4) as connection:
        log = NatsStateLog(connection, STREAM)

        async def walk(run: str) -> list[int]:
            sequences = [0]
            for i in range(30):
                sequences.append(await log.append(draft(run, sequences[-1], str(i))))
            return sequences[1:]

        walks = [asyncio.create_task(walk(f"r{i}")) for i in range(20)]
        for _ in range(2):
            await asyncio.sleep(0.05)
            own_nats.pause()
            await asyncio.sleep(0.9)
            own_nats.resume()
        sequences = [s for walk_ in walks for s in await walk_]
        assert sorted(sequences) == list(range(1, 601))


async def test_a_server_that_is_away_is_waited_for(own_nats: NatsUnderTest) -> None:
    async with installed(own_nats.url, request_timeout_s=0.3) as connection:
        log = NatsStateLog(connection, STREAM)
        await own_nats.kill()
        waiting = asyncio.ensure_future(log.append(draft("r", 0)))
        with pytest.raises(OutcomeUnknown):
            await log.append(draft("person", 0), tries=2)
        with pytest.raises(PortUnavailable):
            await log.tail(draft("r", 0).subject)
        with pytest.raises(PortUnavailable):
            _ = [r async for r in log.history(draft("r", 0).subject)]
        await own_nats.restart()
        assert await waiting == 1


# -- refusals of the server


class _Ok(msgspec.Struct, frozen=True):
    type: str = ""


async def make_stream(connection: Connection, name: str, **settings: object) -> None:
    """A stream of this name on `<name>.>`."""
    config = {
        "name": name, "subjects": [f"{name}.>"], "retention": "limits", "storage": "file", "discard": "new",
        "num_replicas": 1, "allow_atomic": True, "allow_direct": True, **settings,
    }  # fmt: skip
    await connection.ask(f"STREAM.CREATE.{name}", config, _Ok)


def on(stream: str, run: str, expected: int = 0) -> Draft:
    """A commit on a stream of `make_stream`."""
    return Draft(f"{stream}.{run}", expected, b'{"events":[]}', {"Waybook-Commit": run}, run)


async def test_a_full_stream_says_so_singly_and_in_a_batch(connection: Connection) -> None:
    await make_stream(connection, "SMALL", max_msgs=2)
    log = NatsStateLog(connection, "SMALL")
    await log.append(on("SMALL", "r0"))
    results = await asyncio.gather(*(log.append(on("SMALL", f"b{i}")) for i in range(10)), return_exceptions=True)
    assert all(isinstance(r, StreamFull) for r in results)
    await log.append(on("SMALL", "r1"))
    with pytest.raises(StreamFull, match="SMALL"):
        await log.append(on("SMALL", "r2"))


async def test_a_subject_of_another_stream_is_a_misconfiguration(connection: Connection) -> None:
    log = NatsStateLog(connection, "STATE_g1_01")
    with pytest.raises(PortMisconfigured, match="expected stream"):
        await log.append(draft("r", 0))


async def test_a_stream_that_is_not_there_is_a_misconfiguration(connection: Connection) -> None:
    log = NatsStateLog(connection, "NOWHERE")
    with pytest.raises(PortMisconfigured, match="stream not found"):
        await log.append(on("NOWHERE", "r"))
    with pytest.raises(PortMisconfigured):
        _ = [r async for r in log.history("NOWHERE.r")]
    with pytest.raises(PortMisconfigured):
        await log.tail("NOWHERE.r")


async def test_a_stream_without_direct_get_is_a_misconfiguration(connection: Connection) -> None:
    await make_stream(connection, "PLAIN", allow_direct=False)
    with pytest.raises(PortMisconfigured, match="allow_direct"):
        _ = [r async for r in NatsStateLog(connection, "PLAIN").history("PLAIN.r")]


async def test_a_stream_without_atomic_batches_is_written_singly(connection: Connection) -> None:
    await make_stream(connection, "PLAIN", allow_atomic=False)
    log = NatsStateLog(connection, "PLAIN")
    for round_ in range(2):
        group = [log.append(on("PLAIN", f"r{round_}x{i}")) for i in range(20)]
        assert len(set(await asyncio.gather(*group))) == 20


async def test_a_member_that_the_server_refuses_does_not_take_the_others_with_it(connection: Connection) -> None:
    await make_stream(connection, "TIGHT", max_msg_size=1000)
    log = NatsStateLog(connection, "TIGHT")
    large = msgspec.structs.replace(on("TIGHT", "large"), payload=b'"%b"' % (b"x" * 2000))
    results = await asyncio.gather(
        *(log.append(on("TIGHT", f"r{i}")) for i in range(10)), log.append(large), return_exceptions=True
    )
    assert sorted(r for r in results if isinstance(r, int)) == list(range(1, 11))
    assert isinstance(results[-1], PortMisconfigured)


async def test_while_the_server_has_too_many_open_batches_commits_go_singly(connection: Connection) -> None:
    for i in range(50):
        block = header_block({"Nats-Batch-Id": f"open{i}", "Nats-Batch-Sequence": "1"})
        assert not (await connection.request(draft(f"open{i}", 0).subject, b"{}", block)).payload
    log = NatsStateLog(connection, STREAM)
    sequences = await asyncio.gather(*(log.append(draft(f"r{i}", 0)) for i in range(20)))
    assert sorted(sequences) == list(range(1, 21))
    tail = await log.tail(draft("r19", 0).subject)
    assert tail is not None
    assert "Nats-Batch-Id" not in tail.headers


# -- what is stored


async def test_commits_carry_guards_and_no_message_id_and_waiting_ones_go_in_batches(connection: Connection) -> None:
    log = NatsStateLog(connection, STREAM)
    await log.append(draft("single", 0))
    await asyncio.gather(*(log.append(draft(f"r{i}", 0)) for i in range(30)))
    single, member = [await log.tail(draft(run, 0).subject) for run in ("single", "r7")]
    for record in (single, member):
        assert record is not None
        assert record.headers["Nats-Expected-Stream"] == STREAM
        assert record.headers["Nats-Expected-Last-Subject-Sequence"] == "0"
        assert "Nats-Msg-Id" not in record.headers
    assert single is not None
    assert "Nats-Batch-Id" not in single.headers
    assert member is not None
    assert "Nats-Batch-Id" in member.headers


async def test_an_answer_that_came_while_the_process_stood_still_is_no_silence(clean_nats: NatsUnderTest) -> None:
    async with installed(clean_nats.url, request_timeout_s=0.5) as connection:
        asking = asyncio.create_task(connection.request("$JS.API.INFO"))
        await asyncio.sleep(0)
        time.sleep(2.0)  # noqa: ASYNC251 - as a paused process, or code that holds the loop up
        assert (await asking).payload
