"""One walk under test: its command, its workers, and what server and journal say of it."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import nats.errors
from tests.crash import forking
from tests.crash.five_steps import STEPS
from tests.crash.worker import Fault, WorkerSettings, consumers, work

from waybook.adapters.embedded import Addresses
from waybook.adapters.nats.connection import Connection
from waybook.agents.definition import AgentDefinition
from waybook.events.command import Command, StartPayload
from waybook.events.commit import Commit
from waybook.events.engine import StepBegan, ThreadJoined, Transitioned
from waybook.events.subjects import RunKey, command_subject
from waybook.inbox.starting import MailStart, mail_start
from waybook.inbox.table import TABLE
from waybook.services.bootstrap.installation import Installation
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import Wiring, wired
from waybook.testing.history import completed, events_of, illegalities, read_history
from waybook.testing.servers import NatsUnderTest, clear_streams

ACK_WAIT_S = 1.0
DEADLINE_S = 30.0
SIDE_BY_SIDE = 40
MAIL = b"""From: Ada Customer <ada@customer.example>
To: Support <support@shop.example>
Subject: Where is my invoice?
Message-ID: <question@customer.example>
In-Reply-To: <offer@shop.example>
Date: Mon, 02 Mar 2026 10:00:00 +0000

Hello, could you please send me invoice 4711 again? Kind regards, Ada
"""
STATES = ("received", "security_check", "classifying", "drafting", "draft_ready")


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Line(NamedTuple):
    """A line of the journal."""

    word: str
    execution: str
    attempt: int
    pid: int


class Worker:
    """A worker process."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._process = forking.begin(work, settings)

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    @property
    def failed(self) -> bool:
        """Whether it ended by itself, with an error."""
        return not self._process.is_alive() and (self._process.exitcode or 0) > 0

    async def ended(self, within_s: float = DEADLINE_S) -> int:
        """Its exit code; minus the signal that killed it."""
        await until(lambda: not self._process.is_alive(), "the worker ends", within_s)
        code = self._process.exitcode
        assert code is not None
        return code

    async def paused(self) -> None:
        """Returns when the whole process is stopped by a signal."""
        await until(lambda: _state_of(self.pid) == "T", "the worker is stopped")

    def signal(self, number: signal.Signals) -> None:
        """Sends it, when there is still somebody to get it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def stop(self) -> int:
        """Ends it gracefully and returns its exit code."""
        self.signal(signal.SIGTERM)
        return await self.ended()

    def kill(self) -> None:
        """Ends it if it still runs."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join(10)


class Walk:
    """One run of the five steps in a tenant of its own."""

    def __init__(self, wiring: Wiring, url: str, tenant: str, folder: Path) -> None:
        self.wiring = wiring
        self.tenant = tenant
        self.key = RunKey(tenant, "inbox", "r1")
        self.thread = RunKey(tenant, "@thread", "t-r1")
        self.folder = folder / tenant
        self.folder.mkdir()
        self._settings = WorkerSettings(
            url=url, tenant=tenant, journal=self.folder / "journal", log=self.folder / "log",
            gates=self.folder, ack_wait_s=ACK_WAIT_S,
        )  # fmt: skip
        self.workers: list[Worker] = []
        self._mail: MailStart | None = None

    def of_a_mail(self, raw: bytes = MAIL) -> None:
        """The built-in agent walks a real mail, instead of the agent that does nothing."""
        self._mail = mail_start(raw, tenant=self.tenant, mailbox="inbox", received_at=_now())
        assert self._mail.payload.thread is not None
        self.key = self._mail.key
        self.thread = RunKey(self.tenant, "@thread", self._mail.payload.thread)
        self._settings = msgspec.structs.replace(self._settings, version="inbox")

    def worker(self, fault: Fault | None = None, **settings: Any) -> Worker:
        """A new process that walks this tenant's runs; `settings` as in WorkerSettings."""
        worker = Worker(msgspec.structs.replace(self._settings, fault=fault, **settings))
        self.workers.append(worker)
        return worker

    async def start(self) -> None:
        """Publishes the start."""
        await self.start_of(self.key, self._mail.payload if self._mail is not None else None)

    async def start_of(self, key: RunKey, payload: StartPayload | None = None) -> None:
        """Publishes the start of any run of this tenant."""
        if payload is None:
            body = msgspec.Raw(msgspec.json.encode({"subject": "hello"}))
            payload = StartPayload(event="MailReceived", body=body, content="c1", thread=f"t-{key.run}", id=key.run)
        raw = msgspec.Raw(msgspec.json.encode(payload))
        one = Command(id=f"start-{key}", verb="start", issued_at=_now(), actor="t", payload=raw)
        subject = command_subject(key, "start", issuer="cli")
        await self.wiring.commands.publish(subject, msgspec.json.encode(one), command=one.id)

    async def history(self, key: RunKey | None = None) -> list[Commit]:
        """All commits of a run, by default of the walk's own."""
        return await read_history(self.wiring.state, key or self.key)

    async def joined(self) -> int:
        """How often the run joined its thread."""
        history = await read_history(self.wiring.state, self.thread)
        return sum(isinstance(e, ThreadJoined) and e.run == self.key.run for _, e in events_of(history))

    async def commands_left(self, lane: str = "*") -> int:
        """Commands of this tenant that are not acknowledged, of all lanes or of one."""
        return await count(self.wiring.connection, "COMMANDS", f"cmd.*.{lane}.*.{self.tenant}.>")

    async def until_done(self) -> list[Commit]:
        """Waits for the fifth step's end and for the acknowledgement; returns the history."""
        await self.until_version(lambda h: len(completed(h)) == len(STEPS), "the walk ends")
        await until_async(self.is_acknowledged, f"{self.tenant}: the command is acknowledged")
        return await self.history()

    async def until_version(self, reached: Callable[[list[Commit]], bool], what: str) -> list[Commit]:
        """Waits until the history is like that, and returns it."""
        found: list[Commit] = []

        async def look() -> bool:
            nonlocal found
            assert not any(worker.failed for worker in self.workers), "a worker ended with an error, see its log"
            found = await self.history()
            return reached(found)

        await until_async(look, f"{self.tenant}: {what}")
        return found

    async def is_acknowledged(self) -> bool:
        return await self.commands_left() == 0

    async def dead(self) -> int:
        """Commands of this tenant in DEAD."""
        return await count(self.wiring.connection, "DEAD", f"dead.cmd.*.*.*.{self.tenant}.>")

    def ack_wait(self, seconds: float) -> None:
        """The lease of the workers to come."""
        self._settings = msgspec.structs.replace(self._settings, ack_wait_s=seconds)

    def journal(self) -> list[Line]:
        try:
            text = (self.folder / "journal").read_text()
        except FileNotFoundError:
            return []
        return [Line(w, e, int(a), int(p)) for w, e, a, p in (line.split() for line in text.splitlines())]

    def said(self, action: str) -> list[str]:
        """Log lines of this tenant's workers with that action."""
        lines = (self.folder / "log").read_text().splitlines()
        return [line for line in lines if line.split()[1:2] == [action]]

    def gate(self, step: str) -> Path:
        """Bodies of `step` wait while this file is there."""
        path = self.folder / step
        path.touch()
        return path

    async def until_body(self, step: str, *, attempt: int = 1) -> Line:
        """Waits until a body of that step runs."""

        def lines() -> list[Line]:
            return [
                line for line in self.journal()
                if line.word == "begun" and f":{step}:" in line.execution and line.attempt == attempt
            ]  # fmt: skip

        await until(lambda: bool(lines()), f"{self.tenant}: attempt {attempt} of {step} runs")
        return lines()[0]


class Case(Protocol[T_co]):
    """Something that is tried with a walk of its own."""

    def __call__(self, walk: Walk, /) -> Awaitable[T_co]: ...


def assert_walked_once(walk: Walk, history: Sequence[Commit]) -> None:
    """The walk stands complete and legal in its history, and no completed execution ran again."""
    assert illegalities(TABLE, history) == []
    assert [c.split(":")[1] for c in completed(history)] == list(STEPS)
    moved = [e for _, e in events_of(history) if isinstance(e, Transitioned)]
    assert (moved[0].from_state, *(e.to_state for e in moved)) == STATES
    began = [e for _, e in events_of(history) if isinstance(e, StepBegan)]
    attempts = [(f"{walk.key}/{e.walk}:{e.step}:{e.trigger}", e.attempt) for e in began]
    begun = [(line.execution, line.attempt) for line in walk.journal() if line.word == "begun"]
    assert len(begun) == len(set(begun)), "one attempt ran twice"
    assert set(begun) <= set(attempts), "a body ran without its begin"


@asynccontextmanager
async def installation(url: str) -> AsyncIterator[Wiring]:
    """A server with the streams of an installation and without its consumers: each case makes its own."""
    topology = await ensure_topology(url, ack_wait_ms=round(ACK_WAIT_S * 1000))
    assert topology is not None
    async with wired(url, name="crash-test", ack_wait_s=ACK_WAIT_S) as wiring:
        for name in ("ctl_any", "new_any", "step_any"):
            await wiring.connection.client.jetstream().delete_consumer("COMMANDS", name)
        yield wiring


@asynccontextmanager
async def walking(wiring: Wiring, url: str, tenant: str, folder: Path) -> AsyncIterator[Walk]:
    """A walk whose workers are ended with the block."""
    walk = Walk(wiring, url, tenant, folder)
    await wiring.commands.ensure_consumers(consumers(tenant))
    try:
        yield walk
    finally:
        for worker in walk.workers:
            await asyncio.to_thread(worker.kill)


async def side_by_side(
    server: NatsUnderTest,
    folder: Path,
    cases: Mapping[str, Case[T]],
    at_once: int = SIDE_BY_SIDE,
    scheduled: Sequence[AgentDefinition] = (),
) -> dict[str, T | Exception]:
    """Runs cases at the same time on one server, each on a walk of its own; most of their time is waiting.

    A case that fails has its exception as its result, for the test that is named after it. `scheduled`: agents whose
    runs may wait for a timer; one scheduler outlives all workers.
    """
    await asyncio.to_thread(forking.ready)
    await server.start()
    await clear_streams(server.url)
    turn = asyncio.Semaphore(at_once)
    async with AsyncExitStack() as stack:
        wiring = await stack.enter_async_context(installation(server.url))
        if scheduled:
            settings = Settings(nats_url=server.url, ack_wait_s=ACK_WAIT_S)
            here = Installation(settings, Addresses(server.url, None, None), wiring, False)
            await stack.enter_async_context(scheduling(here, scheduled))

        async def one(tenant: str, case: Case[T]) -> T | Exception:
            async with turn:
                try:
                    async with walking(wiring, server.url, tenant, folder) as walk:
                        return await case(walk)
                except Exception as error:  # noqa: BLE001 - told by the case's own test
                    return error

        done = await asyncio.gather(*(one(f"t{number}", case) for number, case in enumerate(cases.values())))
        return dict(zip(cases, done, strict=True))


async def count(connection: Connection, stream: str, subject: str) -> int:
    """Messages of a stream on subjects like `subject`; a busy server is asked again."""
    return sum((await counts(connection, stream, subject)).values())


async def counts(connection: Connection, stream: str, subject: str) -> dict[str, int]:
    """Those messages by subject."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                info = await connection.client.jetstream().stream_info(stream, subjects_filter=subject)
            except nats.errors.TimeoutError:
                continue
            return dict(info.state.subjects or {})


async def until(condition: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
    """Waits for a condition."""

    async def look() -> bool:
        return condition()

    await until_async(look, what, within_s)


async def until_async(condition: Callable[[], Awaitable[bool]], what: str, within_s: float = DEADLINE_S) -> None:
    """Waits for a condition that has to be asked for."""
    end = time.monotonic() + within_s
    while not await condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {within_s:g} s: {what}")
        await asyncio.sleep(0.04)


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _now() -> int:
    return time.time_ns() // 1_000_000
