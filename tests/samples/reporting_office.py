"""The reporting agent on a real nats-server and a real mail server, in this process or in one that can be killed."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from samples.agents.reporting import Reporting
from samples.agents.reporting.events import ReportAsked
from samples.agents.reporting.figures import Figures, FixedFigures
from tests.contract.effects.mail_server import MailServer

from waybook.adapters.effects.journal import ImapJournal
from waybook.adapters.effects.smtp import SmtpSend
from waybook.adapters.embedded import Addresses
from waybook.agents import Agent
from waybook.agents.definition import AgentDefinition, define
from waybook.agents.effects import EffectAdapter
from waybook.engine.ports import Objects
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Answer, StartPayload
from waybook.events.engine import EngineEvent
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.installation import Installation, walking
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import wired
from waybook.services.commanding.client import CommandClient, NoAnswer
from waybook.services.walker.lifecycle import Lifecycle
from waybook.testing.faults import Faults, FaultyEffect, kill
from waybook.testing.history import events_of, read_history

ACK_WAIT_S = 1.0
GRID_S = 1.0
CALL_MS = 700
SOON_S = 40.0
PERSON = "ann"
ASKED = ReportAsked(topic="sales", recipients=("board@example.org", "bob@example.org"))


class CountedFigures(FixedFigures):
    """Figures that write a line for every question, and end their process after the first answer if they are told to.

    The lines outlive the process, as a data source's own log does.
    """

    def __init__(self, asked: Path, *, deadly: bool = False) -> None:
        self._asked = asked
        self._deadly = deadly

    async def of(self, topic: str) -> dict[str, int]:
        """See Figures."""
        found = await super().of(topic)
        with self._asked.open("a") as file:
            file.write(f"{topic}\n")
        if self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return found


class Office:
    """One installation, as a person and a test see it."""

    def __init__(self, installation: Installation, mails: MailServer, folder: Path) -> None:
        self.installation = installation
        self.mails = mails
        self.asked = folder / "asked"
        wiring = installation.wiring
        ports = (wiring.connection, wiring.commands, wiring.state, wiring.clock)
        self._client = CommandClient(*ports, issuer="cli")
        self._hasty = CommandClient(*ports, issuer="cli", patience_s=2.0)
        self._lifecycle = Lifecycle(wiring.state, Codec(), wiring.clock, "test")

    @asynccontextmanager
    async def at_work(self, agent: type[Agent] = Reporting, *, deadly: str | None = None) -> AsyncIterator[None]:
        """A walker and a scheduler for the time of the block; a graceful stop at its end.

        `deadly`: where they kill their own process, "query" or "mail".
        """
        provides: dict[type, Any] = {
            Figures: CountedFigures(self.asked, deadly=deadly == "query"),
            Objects: self.installation.wiring.objects,
        }
        adapter = self._mail_adapter()
        if deadly == "mail":
            faults = Faults()
            faults.arm("call.after", kill)
            adapter = FaultyEffect("mail", adapter, faults)
        definition = on_the_grid(agent)
        async with walking(self.installation, [definition], provides, effects={"mail": adapter}):
            async with scheduling(self.installation, [definition]):
                yield

    def _mail_adapter(self) -> EffectAdapter:
        journal = ImapJournal(
            "127.0.0.1", self.mails.imap_port, username="u", password="p", is_complete=True, tls=False
        )
        return SmtpSend(
            "127.0.0.1", self.mails.port, sender="reports@example.org", tls="none", journal=journal,
            objects=self.installation.wiring.objects, settle_ms=0, call_ms=CALL_MS,
        )  # fmt: skip

    async def start(self) -> RunKey:
        """Somebody asks for a report, and does not wait long for the answer of a process that may die."""
        key = RunKey("main", "reporting", uuid4().hex[:12])
        body = msgspec.Raw(msgspec.json.encode(ASKED))
        payload = StartPayload(event="ReportAsked", body=body, id=key.run)
        with suppress(NoAnswer):
            await self._hasty.give(key, "start", payload, actor=PERSON)
        return key

    async def give(self, key: RunKey, verb: str, payload: Any = None) -> Answer:
        """A person's command, and what they are told."""
        return await self._client.give(key, verb, payload, actor=PERSON)

    async def signal(self, key: RunKey, event: str, **fields: Any) -> Answer:
        """An event from outside."""
        return await self.give(key, "signal", {"event": event, "body": fields, "schema": 1})

    async def run(self, key: RunKey) -> Run | None:
        """The run as STATE has it."""
        return await self._lifecycle.load(key)

    async def until(self, key: RunKey, stands: Callable[[Run], bool]) -> Run:
        """The run as soon as it stands like that."""
        found: list[Run] = []

        async def look() -> bool:
            run = await self.run(key)
            if run is not None:
                found.append(run)
            return run is not None and stands(run)

        try:
            await until(look)
        except TimeoutError as error:
            state = found[-1].state if found else "never there"
            raise AssertionError(f"{key} does not come so far; it is {state}") from error
        return found[-1]

    async def until_state(self, key: RunKey, state: str) -> Run:
        """The run as soon as it is in that state."""
        return await self.until(key, lambda run: run.state == state)

    async def events(self, key: RunKey, *kinds: type[EngineEvent]) -> Sequence[EngineEvent]:
        """What the history holds of these kinds."""
        history = await read_history(self.installation.wiring.state, key)
        return [event for _, event in events_of(history) if isinstance(event, kinds)]

    def queries(self) -> int:
        """How often the figures were asked for."""
        return len(self.asked.read_text().splitlines()) if self.asked.exists() else 0

    def attached(self) -> list[bytes]:
        """The report in every mail that the server took."""
        return [part.get_content() for mail in self.mails.taken for part in _attachments(mail)]


def _attachments(mail: Any) -> list[Any]:
    return [_Bytes(part) for part in mail.iter_attachments()]


class _Bytes:
    def __init__(self, part: Any) -> None:
        self._part = part

    def get_content(self) -> bytes:
        """As they were attached."""
        data: bytes = self._part.get_payload(decode=True)
        return data


def on_the_grid(agent: type[Agent]) -> AgentDefinition:
    """The agent with retries every second."""
    return define(agent).with_retry_grid(round(GRID_S * 1000))


@asynccontextmanager
async def office(nats_url: str, mails: MailServer, folder: Path) -> AsyncIterator[Office]:
    """Ports on the server."""
    settings = Settings(nats_url=nats_url, ack_wait_s=ACK_WAIT_S, retry_grid_s=GRID_S)
    await ensure_topology(nats_url, ack_wait_ms=round(ACK_WAIT_S * 1000))
    async with wired(nats_url, name="reporting", ack_wait_s=ACK_WAIT_S) as wiring:
        yield Office(Installation(settings, Addresses(nats_url, None, None), wiring, False), mails, folder)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Returns as soon as the condition holds. Raises TimeoutError."""
    end = time.monotonic() + SOON_S
    while not await condition():
        if time.monotonic() > end:
            raise TimeoutError
        await asyncio.sleep(0.03)


def work(nats_url: str, smtp_port: int, imap_port: int, folder: Path, deadly: str | None) -> None:
    """Main function of a process: works until it is killed."""
    asyncio.run(_work(nats_url, smtp_port, imap_port, folder, deadly))


async def _work(nats_url: str, smtp_port: int, imap_port: int, folder: Path, deadly: str | None) -> None:
    mails = MailServer()
    mails.port, mails.imap_port = smtp_port, imap_port
    async with office(nats_url, mails, folder) as here, here.at_work(deadly=deadly):
        await asyncio.Event().wait()
