"""Side effects end to end, on a real nats-server with walker and scheduler, against services that fail."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, ClassVar

import msgspec
import pytest
from tests.contract.effects.http_service import Fault, HttpService, http_service
from tests.contract.effects.mail_server import Fault as MailFault
from tests.contract.effects.mail_server import MailServer, mail_server
from tests.integration.retried import give, installed, loaded, until

from waybook.adapters.effects.http import HttpCall
from waybook.adapters.effects.journal import ImapJournal
from waybook.adapters.effects.smtp import SmtpSend
from waybook.agents import Agent, Effects, StartEvent, StepContext, StopEvent, step
from waybook.agents.definition import define
from waybook.agents.effects import EffectAdapter
from waybook.engine.hold import hold
from waybook.engine.run import Run
from waybook.events.command import Command, StartPayload
from waybook.events.subjects import RunKey, command_subject
from waybook.services.bootstrap.installation import Installation, walking
from waybook.services.bootstrap.scheduling import scheduling
from waybook.testing.servers import NatsUnderTest

PARAMS: dict[str, dict[str, Any]] = {
    "ticket": {"path": "/tickets"},
    "mail": {"to": ["ana@customer.example"], "subject": "Re: your question"},
}


class Wanted(StartEvent, frozen=True, kw_only=True):
    """Something is to leave by `way`; the body raises in its first `broken` attempts after it left."""

    way: str
    broken: int = 0


class Left(StopEvent, frozen=True, kw_only=True):
    """It left."""


class Sending(Agent):
    """Sends something, with a text that is another one at each attempt, as a model would write it."""

    name: ClassVar[str] = "sending"

    @step
    async def send(self, wanted: Wanted, effects: Effects, context: StepContext) -> Left:
        text = f"text {context.attempt}"
        said: dict[str, Any] = {"json": {"text": text}} if wanted.way == "ticket" else {"text": text}
        params = {**PARAMS[wanted.way], **said}
        await effects.run(wanted.way, params, key="reply")
        for _ in range(2):  # two that are alike are still two
            await effects.run("note", {"path": "/notes", "json": {}})
        if context.attempt <= wanted.broken:
            raise RuntimeError("the model timed out")
        return Left()


SENDING = define(Sending).with_retry_grid(500)


class Services:
    """The other sides of a case, and adapters that reach them."""

    def __init__(self, service: HttpService, notes: HttpService, mails: MailServer) -> None:
        self.service = service
        self.notes = notes
        self.mails = mails
        self.find_path: str | None = "/tickets/{key}"
        self.journal = True
        self.call_ms = 10_000

    def adapters(self, stack: AsyncExitStack) -> dict[str, EffectAdapter]:
        journal = ImapJournal(
            "127.0.0.1", self.mails.imap_port, username="u", password="p", is_complete=True, tls=False
        )
        ticket = HttpCall(
            self.service.url, find_path=self.find_path, find_is_authoritative=True, settle_ms=0, call_ms=self.call_ms
        )
        note = HttpCall(self.notes.url)
        for one in (ticket, note):
            stack.push_async_callback(one.aclose)
        mail = SmtpSend(
            "127.0.0.1", self.mails.port, sender="help@shop.example", tls="none", settle_ms=0, call_ms=self.call_ms,
            journal=journal if self.journal else None,
        )  # fmt: skip
        return {"ticket": ticket, "note": note, "mail": mail}

    @property
    def arrived(self) -> int:
        return len(self.service.kept) + len(self.mails.taken)


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    async with http_service(HttpService()) as service, http_service(HttpService()) as notes:
        async with mail_server(MailServer()) as mails:
            yield Services(service, notes, mails)


@asynccontextmanager
async def at_work(nats: NatsUnderTest, services: Services) -> AsyncIterator[Installation]:
    """A walker and a scheduler."""
    async with AsyncExitStack() as stack:
        installation = await stack.enter_async_context(installed(nats))
        adapters = services.adapters(stack)
        await stack.enter_async_context(walking(installation, [SENDING], {}, effects=adapters))
        await stack.enter_async_context(scheduling(installation, [SENDING]))
        yield installation


async def begin(installation: Installation, way: str, broken: int = 0) -> RunKey:
    key = RunKey("main", "sending", "r1")
    body = msgspec.Raw(msgspec.json.encode({"way": way, "broken": broken}))
    await give(installation, key, "start", StartPayload(event="Wanted", body=body))
    return key


async def stands(installation: Installation, key: RunKey, word: str) -> Run:
    """The run as soon as it has ended, or is held so."""
    found: list[Run] = []

    async def look() -> bool:
        run = await loaded(installation, key)
        if run is not None and (run.outcome == word or hold(SENDING.engine, run).kind == word):
            found.append(run)
        return bool(found)

    await until(look)
    return found[0]


@pytest.mark.parametrize("fault", ["drop_after", "late", "500_after"])
async def test_a_timed_out_request_is_not_sent_again(
    clean_nats: NatsUnderTest, services: Services, fault: Fault
) -> None:
    """FB-01: the service kept it and its answer was lost, late, or an error. It is asked by key, and has it."""
    services.service.fault = fault
    services.service.late_s = 2.5
    services.call_ms = 1_500 if fault == "late" else 10_000
    async with at_work(clean_nats, services) as installation:
        run = await stands(installation, await begin(installation, "ticket"), "completed")
    assert [key for key, _ in services.service.kept] == [run.operations["send/ticket/reply/1"].evidence["key"]]
    assert run.failures == {}
    await asyncio.sleep(1.5 if fault == "late" else 0)  # it answers somebody who went away


@pytest.mark.parametrize("fault", ["drop_after", "late"])
async def test_a_timed_out_mail_is_not_sent_again(
    clean_nats: NatsUnderTest, services: Services, fault: MailFault
) -> None:
    """FB-01: the journal has the Message-ID."""
    services.mails.fault = fault
    services.mails.late_s = 2.5
    services.call_ms = 1_500 if fault == "late" else 10_000
    async with at_work(clean_nats, services) as installation:
        run = await stands(installation, await begin(installation, "mail"), "completed")
    assert services.mails.message_ids == [run.operations["send/mail/reply/1"].evidence["message_id"]]
    await asyncio.sleep(1.5 if fault == "late" else 0)


@pytest.mark.parametrize("way", ["ticket", "mail"])
async def test_where_nobody_can_be_asked_the_run_is_held_and_nothing_is_sent_again(
    clean_nats: NatsUnderTest, services: Services, way: str
) -> None:
    """FB-01: held as reconciling, not failed; a person's word lets it go on."""
    services.find_path, services.journal = None, False
    services.service.fault, services.mails.fault = "drop_after", "drop_after"
    async with at_work(clean_nats, services) as installation:
        key = await begin(installation, way)
        run = await stands(installation, key, "reconciling")
        assert (run.state, run.failures, run.timers) == ("running", {}, {})
        assert services.arrived == 1
        await give(installation, key, "settle", {"operation": f"send/{way}/reply/1", "outcome": "succeeded"})
        await stands(installation, key, "completed")
    assert services.arrived == 1


@pytest.mark.parametrize("busy", [429, 503])
async def test_a_service_that_asks_to_wait_gets_the_same_key_later(
    clean_nats: NatsUnderTest, services: Services, busy: int
) -> None:
    """FB-01: it surely did nothing, so it may be retried; the wait is no failure."""
    services.service.busy = busy
    async with at_work(clean_nats, services) as installation:
        key = await begin(installation, "ticket")
        await stands(installation, key, "waiting")
        services.service.busy = 0
        run = await stands(installation, key, "completed")
    assert len(services.service.kept) == 1 and run.failures == {}
    keys = {key for _, _, key in services.service.requests}
    assert keys == {run.operations["send/ticket/reply/1"].evidence["key"]}


async def test_a_service_that_is_down_is_tried_again(clean_nats: NatsUnderTest, services: Services) -> None:
    """FB-01: a refused connection is a failure, and surely did nothing."""
    async with http_service(HttpService()) as gone:
        services.service.url = gone.url
    async with at_work(clean_nats, services) as installation:
        key = await begin(installation, "ticket")
        await stands(installation, key, "retry")
        port = int(services.service.url.rpartition(":")[2])
        async with http_service(services.service, port):
            run = await stands(installation, key, "completed")
    assert len(services.service.kept) == 1
    assert next(a for a in run.actions.values()).status == "failed"


async def test_a_held_run_resolves_itself_when_the_service_answers_again(
    clean_nats: NatsUnderTest, services: Services
) -> None:
    """The reconcile job: a timer of the scheduler has the service asked, and no person is needed."""
    services.service.fault = "drop_after"
    services.service.answering = False
    services.call_ms = 1_000
    async with at_work(clean_nats, services) as installation:
        key = await begin(installation, "ticket")
        await stands(installation, key, "reconciling")
        async with asyncio.timeout(30.0):  # the unknown outcome stands first, the step is parked right after
            while len((await stands(installation, key, "reconciling")).timers) != 1:  # noqa: ASYNC110  as `until`
                await asyncio.sleep(0.02)
        services.service.answering = True
        run = await stands(installation, key, "completed")
    operation = run.operations["send/ticket/reply/1"]
    assert (operation.outcome, operation.by, services.arrived) == ("succeeded", "find", 1)


async def test_a_retried_step_does_its_effects_once(clean_nats: NatsUnderTest, services: Services) -> None:
    """FB-45: the step fails after its effects, twice; another text is no second ticket, and two alike are two."""
    async with at_work(clean_nats, services) as installation:
        run = await stands(installation, await begin(installation, "ticket", broken=2), "completed")
    assert [body for _, body in services.service.kept] == ['{"text":"text 1"}']
    assert len(services.notes.kept) == 2 and len({key for key, _ in services.notes.kept}) == 2
    assert [a.status for a in run.actions.values()] == ["failed", "failed", "completed"]


async def test_a_command_that_comes_again_after_the_servers_window_is_applied_once(
    clean_nats: NatsUnderTest, services: Services
) -> None:
    """FB-03: uniqueness is the run's own; the window of the server is only a saving."""
    async with at_work(clean_nats, services) as installation:
        stream = installation.wiring.connection.client.jetstream()
        config = (await stream.stream_info("COMMANDS")).config
        config.duplicate_window = 0.2
        await stream.update_stream(config)
        key = RunKey("main", "sending", "r1")
        start = StartPayload(event="Wanted", body=msgspec.Raw(b'{"way":"ticket"}'))
        command = Command(
            id="one-intention", verb="start", issued_at=time.time_ns() // 1_000_000, actor="t",
            payload=msgspec.Raw(msgspec.json.encode(start)),
        )  # fmt: skip
        publish = partial(
            installation.wiring.commands.publish, command_subject(key, "start", issuer="cli"), command=command.id
        )
        assert await publish(msgspec.json.encode(command))
        assert not await publish(msgspec.json.encode(command)), "within the window it is not stored again"
        await stands(installation, key, "completed")
        await until(partial(_stored, publish, msgspec.json.encode(command)))
        run = await stands(installation, key, "completed")
    assert run.actions.keys() == {"1.2"} and services.arrived == 1


async def _stored(publish: Any, payload: bytes) -> bool:
    return bool(await publish(payload))
