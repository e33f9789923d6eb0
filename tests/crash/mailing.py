"""An agent with three steps that ask a model, and a send; and a worker process of it that may die at any time."""

import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from waybook.adapters.effects.journal import ImapJournal
from waybook.adapters.effects.smtp import SmtpSend
from waybook.adapters.embedded import Addresses
from waybook.agents import Agent, Effects, Event, StartEvent, StopEvent, step
from waybook.agents.definition import AgentDefinition, define
from waybook.agents.effects import EffectAdapter
from waybook.engine.ports import ANY_LANE
from waybook.events.errors import RetryableError
from waybook.services.bootstrap.installation import Installation
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.wiring import walker_ports, wired
from waybook.services.walker.definitions import lanes
from waybook.services.walker.walker import Walker, WalkerOptions

ACK_WAIT_S = 2.0
GRID_MS = 1_000
CALL_MS = 6_000
SETTLE_MS = 300
MARGIN_MS = 200
SLOTS = 4
MODEL_FAILS = 0.05
MODEL_S = 0.01
STEPS = ("read", "think", "write")


class ModelFailed(RetryableError):
    """The model did not answer."""


class Model:
    """A model that fails at random."""

    def __init__(self) -> None:
        self._lot = random.Random(os.getpid())

    async def ask(self) -> None:
        """Raises ModelFailed for some questions."""
        await asyncio.sleep(MODEL_S)
        if self._lot.random() < MODEL_FAILS:
            raise ModelFailed("the model did not answer")


class Asked(StartEvent, frozen=True, kw_only=True):
    """Somebody wrote."""

    number: int


class Read(Event, frozen=True, kw_only=True):
    """What they want."""


class Thought(Event, frozen=True, kw_only=True):
    """What to say."""


class Written(Event, frozen=True, kw_only=True):
    """How to say it."""

    number: int


class Sent(StopEvent, frozen=True, kw_only=True):
    """It left."""


class Mailing(Agent):
    """Three questions to a model, and a mail."""

    name: ClassVar[str] = "mailing"

    @step
    async def read(self, asked: Asked, model: Model) -> Read:
        await model.ask()
        return Read()

    @step
    async def think(self, read: Read, model: Model) -> Thought:
        await model.ask()
        return Thought()

    @step
    async def write(self, asked: Asked, thought: Thought, model: Model) -> Written:
        await model.ask()
        return Written(number=asked.number)

    @step
    async def send(self, written: Written, effects: Effects) -> Sent:
        params = {"to": [f"to{written.number}@example.org"], "subject": str(written.number), "text": "hello"}
        await effects.run("mail", params, key="reply")
        return Sent()


MAILING = define(Mailing).with_retry_grid(GRID_MS)


class MailingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the servers are; without `imap_port` sent mails are kept nowhere that could be asked."""

    url: str
    smtp_port: int
    imap_port: int | None
    log: Path


@asynccontextmanager
async def installed(url: str, name: str) -> AsyncIterator[Installation]:
    """Ports on the server."""
    settings = Settings(nats_url=url, ack_wait_s=ACK_WAIT_S, retry_grid_s=GRID_MS / 1000, retry_rate=1000)
    async with wired(url, name=name, ack_wait_s=ACK_WAIT_S) as wiring:
        yield Installation(settings, Addresses(url, None, None), wiring, False)


def work(settings: MailingSettings) -> None:
    """Main function of the process: walks and schedules until SIGTERM."""
    logging.basicConfig(filename=settings.log, level=logging.WARNING, format="%(process)d %(name)s %(message)s")
    sys.exit(asyncio.run(_work(settings)))


async def _work(settings: MailingSettings) -> int:
    async with installed(settings.url, "mailing-worker") as installation:
        mails = sender_of(settings, journal_of(settings))
        return await walk(installation, settings, MAILING, {Model: Model()}, {"mail": mails})


def journal_of(settings: MailingSettings) -> ImapJournal | None:
    """Where sent mails are looked for, if anywhere."""
    if settings.imap_port is None:
        return None
    return ImapJournal(
        "127.0.0.1", settings.imap_port, username="u", password="p", is_complete=True, tls=False, timeout_s=20
    )


def sender_of(settings: MailingSettings, journal: ImapJournal | None) -> SmtpSend:
    """The way out."""
    return SmtpSend(
        "127.0.0.1", settings.smtp_port, sender="us@example.org", tls="none", journal=journal, settle_ms=SETTLE_MS,
        call_ms=CALL_MS,
    )  # fmt: skip


async def walk(
    installation: Installation,
    settings: MailingSettings,
    agent: AgentDefinition,
    provides: dict[type, Any],
    effects: dict[str, EffectAdapter],
) -> int:
    """A walker and a scheduler of one agent until SIGTERM; the exit code."""
    own = lanes([agent])
    options = WalkerOptions(
        strict=True, pull_s=0.25, slots=SLOTS, ctl_slots=SLOTS, executions=SLOTS, clock_margin_ms=MARGIN_MS,
        lane_consumers=tuple(spec.name for spec in own),
    )  # fmt: skip
    async with walker_ports(
        installation.wiring, settings.url, ack_wait_s=ACK_WAIT_S, exclusive=False,
        on_lost=lambda: walker.claims_lost(), consumers=(*ANY_LANE, *own),
    ) as ports:  # fmt: skip
        walker = Walker([agent], ports, provides=provides, effects=effects, options=options)
        stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
        async with scheduling(installation, [agent]):
            running = asyncio.create_task(walker.run())
            stop = asyncio.create_task(stopping.wait())
            await asyncio.wait([running, stop], return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            await walker.stop()
            await running
    return 0
