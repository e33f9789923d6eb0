"""The consumer library against a real server: nothing is missed, nothing comes out of order, whatever dies."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import nats
import pytest
from nats.aio.client import Client
from tests.integration import subscriber_process

from waybook.adapters.embedded import programs
from waybook.adapters.embedded.free_port import free_port
from waybook.adapters.nats.topology.applying import apply
from waybook.adapters.nats.topology.file import load_topology
from waybook.events import engine as e
from waybook.events import pull
from waybook.events.codec import Codec, UnknownEventType, commit_headers
from waybook.events.commit import Commit, Position
from waybook.events.engine import EngineEvent
from waybook.events.errors import InvalidInput
from waybook.events.pull import PositionLost, ReadRefused, StreamMissing
from waybook.events.subjects import RunKey, state_stream, state_subject
from waybook.events.subscribe import Item, Unreachable, subscribe
from waybook.testing.servers import NatsUnderTest

STREAM = state_stream()
DEADLINE_S = 20.0
MOVED = e.Transitioned(row="R", from_state="a", to_state="b", on="X")
FIRED = e.TimerFired(timer="1.0")


@asynccontextmanager
async def connected(server: NatsUnderTest) -> AsyncIterator[Client]:
    connection = await nats.connect(server.url, max_reconnect_attempts=-1, reconnect_time_wait=0.05)
    await apply(connection, load_topology())
    try:
        yield connection
    finally:
        await connection.close()


async def append(connection: Client, version: int, *events: EngineEvent, run: str = "r1", agent: str = "inbox") -> int:
    commit = Commit(version=version, walk=1, at=version, actor="w", definition="d", events=events)
    key = RunKey("acme" if agent != "other" else "umbra", agent, run)
    ack = await connection.jetstream().publish(
        state_subject(key), Codec().encode(commit), headers=commit_headers(commit), timeout=5
    )
    return ack.seq


async def take(count: int, items: AsyncIterator[Item]) -> list[Item]:
    taken: list[Item] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(taken) < count:
            taken.append(await anext(items))
    return taken


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.02)


def sequences(items: list[Item]) -> list[int]:
    return [item.position.sequence for item in items]


async def test_commits_come_in_order_with_all_that_names_them(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        published = e.EventPublished(event="Mail", schema=2, payload=msgspec.Raw(b"{}"))
        await append(connection, 1, published, MOVED, run="r1")
        await append(connection, 1, FIRED, run="r2")
        items = [item async for item in subscribe(clean_nats.url, follow=False)]
    first, second = items
    assert (first.position, second.position) == (Position(STREAM, 1), Position(STREAM, 2))
    assert (first.key, second.key) == (RunKey("acme", "inbox", "r1"), RunKey("acme", "inbox", "r2"))
    assert (first.names, first.events) == (("1.0", "1.1"), (published, MOVED))
    assert first.commit.events == first.events
    assert first.headers["Waybook-Schemas"] == "Mail:2"
    assert abs(first.stored_at - time.time() * 1000) < 60_000


async def test_reading_goes_on_behind_a_position(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        for version in range(1, 6):
            await append(connection, version, FIRED)
    items = [item async for item in subscribe(clean_nats.url, after=Position(STREAM, 3), follow=False)]
    assert sequences(items) == [4, 5]
    assert [item async for item in subscribe(clean_nats.url, after=Position(STREAM, 5), follow=False)] == []


@pytest.mark.parametrize(
    ("types", "names"),
    [({"Transitioned"}, ["1.0", "3.1"]), ({"Mail"}, ["3.0"]), ({"EventPublished", "TimerFired"}, ["2.0", "3.0"])],
)
async def test_types_are_those_of_the_engine_or_of_agents(
    clean_nats: NatsUnderTest, types: set[str], names: list[str]
) -> None:
    async with connected(clean_nats) as connection:
        await append(connection, 1, MOVED)
        await append(connection, 2, FIRED)
        await append(connection, 3, e.EventPublished(event="Mail", schema=1, payload=msgspec.Raw(b"{}")), MOVED)
        items = [item async for item in subscribe(connection, types=types, follow=False)]
        assert connection.is_connected, "a given connection is left open"
    assert [name for item in items for name in item.names] == names


async def test_tenant_and_agents_narrow_the_runs(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        for agent in ("inbox", "triage", "other", "inbox"):
            await append(connection, 1, FIRED, agent=agent)
    two = [i async for i in subscribe(clean_nats.url, agents={"triage", "other"}, follow=False)]
    assert [item.key.agent for item in two] == ["triage", "other"]
    acme = [i async for i in subscribe(clean_nats.url, tenant="acme", after=Position(STREAM, 1), follow=False)]
    assert sequences(acme) == [2, 4]
    with pytest.raises(InvalidInput, match="tenant"):
        await take(1, subscribe(clean_nats.url, tenant="acme.>"))


async def test_a_payload_that_is_not_asked_for_is_not_even_decoded(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        subject = state_subject(RunKey("acme", "inbox", "r9"))
        await connection.jetstream().publish(subject, b"?", headers={"Waybook-Types": "TimerFired"})
        await append(connection, 1, MOVED)
    items = [item async for item in subscribe(clean_nats.url, types={"Transitioned"}, follow=False)]
    assert sequences(items) == [2]


async def test_a_reader_older_than_the_writer_leaves_out_what_it_does_not_know(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        commit = Commit(version=1, walk=1, at=1, actor="w", definition="d", events=(FIRED, MOVED))
        payload = Codec().encode(commit).replace(b"TimerFired", b"TimerMoved")
        headers = {"Waybook-Types": "TimerMoved,Transitioned"}
        await connection.jetstream().publish(state_subject(RunKey("acme", "inbox", "r9")), payload, headers=headers)
    (item,) = [item async for item in subscribe(clean_nats.url, follow=False)]
    assert (item.names, item.events) == (("1.1",), (MOVED,))
    with pytest.raises(UnknownEventType, match="TimerMoved"):
        await take(1, subscribe(clean_nats.url, types={"TimerMoved"}))


async def test_an_item_without_events_moves_the_position_of_a_reader_of_rare_types(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        for version in range(1, 8):
            await append(connection, version, MOVED if version == 6 else FIRED)
    items = [i async for i in subscribe(clean_nats.url, types={"Transitioned"}, progress_every=2, follow=False)]
    assert [(item.position.sequence, len(item.events)) for item in items] == [(2, 0), (4, 0), (6, 1)]


async def test_a_new_commit_arrives_at_once(clean_nats: NatsUnderTest) -> None:
    """One message alone is not held back until a batch is full or a request has run out."""
    async with connected(clean_nats) as connection, aclosing(subscribe(clean_nats.url)) as items:
        await append(connection, 1, FIRED)
        await take(1, items)
        for version in range(2, 6):
            waiting = asyncio.ensure_future(take(1, items))
            await asyncio.sleep(0)
            began = time.monotonic()
            await append(connection, version, FIRED)
            await waiting
            assert time.monotonic() - began < 1.0


async def test_a_deleted_consumer_is_made_again_where_it_stood(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection, aclosing(subscribe(clean_nats.url)) as items:
        for version in range(1, 4):
            await append(connection, version, FIRED)
        assert sequences(await take(3, items)) == [1, 2, 3]
        jetstream = connection.jetstream()
        names = [info.name for info in await jetstream.consumers_info(STREAM) if info.name.startswith("subscribe-")]
        assert len(names) == 1
        await jetstream.delete_consumer(STREAM, names[0])
        await append(connection, 4, FIRED)
        assert sequences(await take(1, items)) == [4]


async def test_a_killed_server_only_delays(own_nats: NatsUnderTest) -> None:
    async with connected(own_nats) as connection:
        for version in range(1, 400):
            await append(connection, version, FIRED)
        async with aclosing(subscribe(own_nats.url)) as items:
            before = await take(150, items)
            await own_nats.kill()
            await own_nats.restart()
            await until(lambda: connection.is_connected)
            await append(connection, 400, FIRED)
            after = await take(250, items)
    assert sequences(before + after) == list(range(1, 401))


async def test_a_subscription_leaves_no_consumer_behind(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        await append(connection, 1, FIRED)
        async with aclosing(subscribe(clean_nats.url)) as items:
            await take(1, items)
        names = [info.name for info in await connection.jetstream().consumers_info(STREAM)]
    assert not [name for name in names if name.startswith("subscribe-")]


async def test_a_durable_goes_on_in_order_behind_what_was_done(clean_nats: NatsUnderTest) -> None:
    """What was delivered and not done comes again first; JetStream alone would bring newer commits before it."""
    async with connected(clean_nats) as connection:
        for version in range(1, 31):
            await append(connection, version, FIRED)
        async with aclosing(subscribe(connection, durable="billing", agents={"inbox"})) as items:
            assert sequences(await take(10, items)) == list(range(1, 11))
        async with aclosing(subscribe(connection, durable="billing", agents={"inbox"})) as items:
            assert sequences(await take(21, items)) == list(range(10, 31))
        with pytest.raises(InvalidInput, match="another name"):
            await take(1, subscribe(connection, durable="billing", agents={"other"}))


async def test_a_position_that_the_stream_does_not_have_is_an_error(clean_nats: NatsUnderTest) -> None:
    async with connected(clean_nats) as connection:
        await append(connection, 1, FIRED)
    with pytest.raises(PositionLost, match="ends at 1, before the position 7"):
        await take(1, subscribe(clean_nats.url, after=Position(STREAM, 7)))
    with pytest.raises(InvalidInput, match="another stream"):
        await take(1, subscribe(clean_nats.url, after=Position("STATE_g2_00", 1)))
    with pytest.raises(InvalidInput, match="durable"):
        await take(1, subscribe(clean_nats.url, after=Position(STREAM, 1), durable="billing"))


async def test_a_hole_in_the_stream_is_an_error(clean_nats: NatsUnderTest) -> None:
    connection = await nats.connect(clean_nats.url)
    try:
        await connection.jetstream().add_stream(name=STREAM, subjects=["state.g1.00.>"])
        for version in range(1, 4):
            await append(connection, version, FIRED)
        await connection.jetstream().delete_msg(STREAM, 2)
    finally:
        await connection.close()
    with pytest.raises(PositionLost, match="lacks 2: the next message is 3"):
        await take(2, subscribe(clean_nats.url))


async def test_a_missing_stream_is_named(clean_nats: NatsUnderTest) -> None:
    with pytest.raises(StreamMissing, match="STATE_g9_00"):
        await take(1, subscribe(clean_nats.url, stream="STATE_g9_00"))


async def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(Unreachable, match=r"no NATS server at nats://127\.0\.0\.1:1 within 0\.3 s: .*[Cc]onnect"):
        await take(1, subscribe("nats://127.0.0.1:1", connect_timeout_s=0.3))


async def test_a_killed_process_has_in_the_end_seen_everything_in_order(
    clean_nats: NatsUnderTest, tmp_path: Path
) -> None:
    """SIGKILL twice in the middle; each time a new process goes on with the position that the old one stored."""
    seen = tmp_path / "seen"

    def reached(lines: int) -> bool:
        return seen.exists() and seen.read_bytes().count(b"\n") >= lines

    expected: list[str] = []
    async with connected(clean_nats) as connection:

        async def publish(count: int) -> None:
            for _ in range(count):
                n = len(expected)
                events = (FIRED, MOVED) if n % 3 else (MOVED,)
                await append(connection, n, FIRED, run=f"r{n % 7}")
                sequence = await append(connection, n, *events, run=f"r{n % 7}")
                expected.append(f"{sequence} acme.inbox.r{n % 7} {n}.{len(events) - 1} Transitioned")

        await publish(150)
        for kill_at in (60, 260, None):
            script = str(subscriber_process.__file__)
            child = await asyncio.create_subprocess_exec(sys.executable, script, clean_nats.url, str(tmp_path))
            try:
                if kill_at is None:
                    await publish(50)
                    await until(lambda: seen.read_text().splitlines()[-1] == expected[-1])
                else:
                    publishing = asyncio.ensure_future(publish(150))
                    await until(partial(reached, kill_at))
                    os.kill(child.pid, signal.SIGKILL)
                    await publishing
            finally:
                if child.returncode is None:
                    child.kill()
                await child.wait()
    lives = [life.splitlines() for life in seen.read_text().split("began\n")[1:]]
    assert len(lives) == 3
    done = 0
    for life in lives:
        begin = expected.index(life[0])
        assert begin <= done, "nothing was missed between two lives"
        assert life == expected[begin : begin + len(life)], "in order, without a hole"
        done = begin + len(life)
    assert done == len(expected)


@asynccontextmanager
async def guarded(folder: Path, allowed: list[str]) -> AsyncIterator[str]:
    """A server on which the user `reader` may publish to `allowed` only; yields its address."""
    port = free_port()
    config = {
        "listen": f"127.0.0.1:{port}",
        "jetstream": {"store_dir": str(folder)},
        "authorization": {
            "users": [
                {"user": "admin", "password": "a"},
                {"user": "reader", "password": "r", "permissions": {"publish": allowed, "subscribe": ["_INBOX.>"]}},
            ]
        },
    }
    file = folder / "server.conf"
    file.write_bytes(msgspec.json.encode(config))
    server = await asyncio.create_subprocess_exec(
        programs.nats_server(), "-c", str(file), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        await server.wait()


async def quiet(error: Exception) -> None:
    """The server may still be starting."""


async def test_the_documented_permissions_are_enough_and_bind_a_reader_to_its_tenant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "ANSWER_S", 0.5)
    guide = (Path(__file__).parents[2] / "docs" / "consuming-events.md").read_text(encoding="utf-8")
    allowed = re.findall(r"^    (\$JS\.\S+)$", guide, flags=re.MULTILINE)
    assert len(allowed) >= 4
    async with guarded(tmp_path, allowed) as address:
        admin = await nats.connect(
            f"nats://admin:a@{address}", reconnect_time_wait=0.02, max_reconnect_attempts=500, error_cb=quiet
        )
        try:
            await apply(admin, load_topology())
            for agent in ("inbox", "other", "inbox"):
                await append(admin, 1, FIRED, agent=agent)
        finally:
            await admin.close()
        reader = f"nats://reader:r@{address}"
        own = [i async for i in subscribe(reader, name="billing", tenant="acme", follow=False)]
        assert sequences(own) == [1, 3]
        again = [i async for i in subscribe(reader, durable="billing", tenant="acme", follow=False)]
        assert sequences(again) == [1, 3]
        for foreign in ({"name": "billing", "tenant": "umbra"}, {"name": "billing"}, {"tenant": "acme"}):
            with pytest.raises(ReadRefused, match=r"(?i)permissions violation"):
                await take(1, subscribe(reader, **foreign))  # type: ignore[arg-type]


def test_nothing_but_msgspec_is_imported_before_the_first_use() -> None:
    code = (
        "import sys, waybook.events.subscribe, waybook.events.schema; "
        "sys.exit(','.join(m for m in ('nats', 'asyncpg', 'typer', 'waybook.engine') if m in sys.modules) or None)"
    )
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
