"""Servers that die or are full while mails walk: everything ends, nothing is lost, doubled or failed because of it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from waybook.adapters.embedded import Addresses
from waybook.engine.ports import Outgoing, PortMisconfigured, PortUnavailable, StreamFull
from waybook.events.command import Command
from waybook.events.commit import Commit, Position
from waybook.events.engine import ActionAbandoned, StepFailed
from waybook.events.subjects import RunKey, command_subject, state_stream
from waybook.inbox.starting import mail_start
from waybook.inbox.table import TABLE
from waybook.projections.read_models import ReadModels
from waybook.projections.verify import verify
from waybook.services.bootstrap.installation import Installation, projecting, walking
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import wired
from waybook.services.walker.walker import Walker
from waybook.testing.history import completed, events_of, illegalities, read_history
from waybook.testing.servers import NatsUnderTest, ServerUnderTest

MESSAGES = 500
GROUP = 25
PACE_S = 0.5
DATABASE_AWAY_S = 10.0
ACK_WAIT_S = 3.0
STEPS = 5
DEADLINE_S = 60.0

MAIL = b"""From: Ada Customer <ada@customer.example>
To: Support <support@shop.example>
Subject: Question %(number)d about my invoice
Message-ID: <question-%(number)d@customer.example>
Date: Mon, 02 Mar 2026 10:00:00 +0000

Hello,
could you please send me invoice number %(number)d again? I cannot find it any more.
Kind regards, Ada
"""


class Mails:
    """Starts of mails, published until the server has them."""

    def __init__(self, installation: Installation) -> None:
        self._wiring = installation.wiring
        self.keys: list[RunKey] = []

    async def publish(self, count: int) -> None:
        """Publishes so many more."""
        messages = [self._message(len(self.keys)) for _ in range(count)]
        while True:
            try:
                await self._wiring.commands.publish_many(messages)
                return
            except PortUnavailable:
                await asyncio.sleep(0.1)

    def _message(self, number: int) -> Outgoing:
        start = mail_start(MAIL % {b"number": number}, tenant="main", mailbox="inbox", received_at=_now())
        self.keys.append(start.key)
        payload = msgspec.Raw(msgspec.json.encode(start.payload))
        command = Command(id=f"start-{number}", verb="start", issued_at=_now(), actor="test", payload=payload)
        return Outgoing(command_subject(start.key, "start", issuer="cli"), msgspec.json.encode(command), command.id)


@asynccontextmanager
async def installed(nats: NatsUnderTest, database_url: str | None = None) -> AsyncIterator[Installation]:
    """The streams on a server, and ports."""
    settings = Settings(nats_url=nats.url, database_url=database_url, ack_wait_s=ACK_WAIT_S)
    await ensure_topology(nats.url, ack_wait_ms=round(ACK_WAIT_S * 1000))
    async with wired(nats.url, name="restart-test", ack_wait_s=ACK_WAIT_S) as wiring:
        yield Installation(settings, Addresses(nats.url, nats.monitor_url, database_url), wiring, False)


@asynccontextmanager
async def walked(installation: Installation) -> AsyncIterator[Walker]:
    """The built-in agent at work."""
    agent, provides = mail_agent(installation.settings)
    async with walking(installation, [agent], provides) as walker:
        yield walker


async def until_done(installation: Installation, keys: Sequence[RunKey]) -> list[list[Commit]]:
    """Waits until every run has ended its steps and COMMANDS is empty; the histories."""
    open_keys = list(keys)
    async with asyncio.timeout(DEADLINE_S):
        while open_keys or await commands_left(installation):
            open_keys = [
                k for k in open_keys if len(completed(await read_history(installation.wiring.state, k))) < STEPS
            ]
            await asyncio.sleep(0.1)
    return [await read_history(installation.wiring.state, k) for k in keys]


async def commands_left(installation: Installation) -> int:
    info = await installation.wiring.connection.client.jetstream().stream_info("COMMANDS")
    return info.state.messages


def assert_walked_once(histories: Sequence[Sequence[Commit]]) -> None:
    for history in histories:
        assert illegalities(TABLE, history) == []
        assert len(completed(history)) == len(set(completed(history))) == STEPS
        assert not [e for _, e in events_of(history) if isinstance(e, StepFailed | ActionAbandoned)]


def broken_actors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if getattr(r, "action", "") == "actor_broke"]


async def test_mails_walk_on_while_nats_is_killed_again_and_again_and_the_database_is_away(
    own_nats: NatsUnderTest, own_postgres: ServerUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with installed(own_nats, own_postgres.url) as installation, projecting(installation):
        mails = Mails(installation)
        async with walked(installation):

            async def break_nats() -> None:
                for ending in (own_nats.kill, own_nats.kill, own_nats.stop):
                    await asyncio.sleep(DATABASE_AWAY_S / 4)
                    await ending()
                    await own_nats.restart()

            async def break_database() -> None:
                await asyncio.sleep(PACE_S)
                await own_postgres.stop()
                await asyncio.sleep(DATABASE_AWAY_S)
                await own_postgres.start()

            trouble = asyncio.gather(break_nats(), break_database())
            for _ in range(MESSAGES // GROUP):
                await mails.publish(GROUP)
                await asyncio.sleep(PACE_S)
            await trouble
            histories = await until_done(installation, mails.keys)
            assert_walked_once(histories)
        assert broken_actors(caplog) == []
        await assert_read_models_agree(installation)


async def assert_read_models_agree(installation: Installation) -> None:
    stream = state_stream()
    info = await installation.wiring.connection.client.jetstream().stream_info(stream)
    async with ReadModels.open(installation.database_url) as models:
        await models.wait_until(Position(stream, info.state.last_seq), DEADLINE_S)
        assert len(await models.messages()) == MESSAGES
    verified = await verify(installation.wiring.connection, installation.database_url)
    assert (verified.differing, verified.differences) == (0, ())


async def test_a_full_stream_fails_nothing_and_the_walk_goes_on_when_there_is_room(
    own_nats: NatsUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with installed(own_nats) as installation:
        mails = Mails(installation)
        await limit_state(installation, 40_000)
        async with walked(installation) as walker:
            await mails.publish(60)
            async with asyncio.timeout(DEADLINE_S):
                while not isinstance(walker.problem, StreamFull):  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.02)
            began = time.monotonic()
            while time.monotonic() < began + 1.5:
                assert walker.problem is not None, "a walker that cannot commit says that it is healthy"
                await asyncio.sleep(0.02)
            await limit_state(installation, -1)
            assert_walked_once(await until_done(installation, mails.keys))
            assert walker.problem is None
    assert broken_actors(caplog) == []


async def test_a_walker_that_cannot_go_on_ends_what_waits_for_it(own_nats: NatsUnderTest) -> None:
    async with installed(own_nats) as installation:
        with pytest.raises(PortMisconfigured, match="COMMANDS"):
            async with walked(installation), asyncio.timeout(DEADLINE_S):
                await installation.wiring.connection.client.jetstream().delete_stream("COMMANDS")
                await asyncio.Event().wait()


async def limit_state(installation: Installation, max_bytes: int) -> None:
    jetstream = installation.wiring.connection.client.jetstream()
    config = (await jetstream.stream_info(state_stream())).config
    config.max_bytes = max_bytes
    await jetstream.update_stream(config)


def _now() -> int:
    return time.time_ns() // 1_000_000
