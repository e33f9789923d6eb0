"""Whatever is published to COMMANDS is walked, or refused and answered, or kept in DEAD; the walker goes on."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.integration.test_walker_restart import MAIL, installed, until_done

from waybook.events.command import Answer
from waybook.events.headers import MSG_ID, REPLY
from waybook.events.subjects import RunKey, command_subject, state_stream
from waybook.inbox.starting import mail_start
from waybook.services.bootstrap.installation import Installation
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.wiring import walker_ports
from waybook.services.walker.walker import Walker, WalkerOptions
from waybook.testing.servers import NatsUnderTest

RUN = RunKey("t", "inbox", "r1")
START = command_subject(RUN, "start", issuer="cli")
DEADLINE_S = 20.0


class Garbage(NamedTuple):
    """A message for COMMANDS."""

    subject: str
    payload: bytes
    headers: dict[str, str] = {}


def _now() -> int:
    return time.time_ns() // 1_000_000


def command(verb: str = "start", payload: Any = None, **fields: Any) -> bytes:
    """A command's bytes, right but for what is given."""
    whole = {"id": "c1", "verb": verb, "issued_at": _now(), "actor": "a", "payload": payload, **fields}
    return msgspec.json.encode(whole)


def start(event: str = "MailReceived", body: Any = None, **fields: Any) -> bytes:
    return command("start", {"event": event, "body": body, **fields})


def mail_payload() -> dict[str, Any]:
    """The payload of a start that is right."""
    payload = mail_start(MAIL % {b"number": 7}, tenant="t", mailbox="inbox", received_at=_now()).payload
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(payload))
    return found


def big_mail(size: int) -> dict[str, Any]:
    payload = mail_payload()
    payload["body"]["subject"] = "x" * size
    return payload


def cancel(**fields: Any) -> Garbage:
    return Garbage(command_subject(RUN, "cancel", issuer="gw"), command("cancel", **fields))


def signal(payload: dict[str, Any]) -> Garbage:
    return Garbage(command_subject(RUN, "signal", issuer="cli"), command("signal", payload))


GARBAGE = {
    "random bytes": Garbage(START, b"\x00\xff\x17random\x80"),
    "nothing": Garbage(START, b""),
    "not a command": Garbage(START, b'{"hello": [1, 2]}'),
    "nested too deep": Garbage(START, b"[" * 100_000),
    "payload nested too deep": Garbage(START, command()[:-5] + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "no payload": Garbage(START, command()),
    "an unknown agent": Garbage(command_subject(RunKey("t", "nobody", "r1"), "start", issuer="cli"), start()),
    "a system aggregate": Garbage(command_subject(RunKey("t", "@thread", "r1"), "start", issuer="cli"), start()),
    "an unknown verb": Garbage(command_subject(RUN, "dance", issuer="cli"), command("dance")),
    "an unknown event": Garbage(START, start("Nonsense", {})),
    "a body of another shape": Garbage(START, start(body={"mail": 7})),
    "a body that is text": Garbage(START, start(body="text")),
    "an object that is not there": Garbage(START, start(reference="inbox/r1/none")),
    "a thread that is no token": Garbage(START, command(payload={**mail_payload(), "thread": "a.b *"})),
    "a body too large for a commit": Garbage(START, command(payload=big_mail(800_000))),
    "as large as the server takes": Garbage(START, b"x" * (1024 * 1024 - 100)),
    "a timer that a person fires": Garbage(command_subject(RUN, "timer", issuer="cli"), command("timer")),
    "an approval by the relay": Garbage(command_subject(RUN, "signal", issuer="relay"), command("signal")),
    "an issuer that there is not": Garbage("cmd.ctl.any.root.t.inbox.r1.cancel", command("cancel")),
    "a subject too short": Garbage("cmd.ctl.any.cli", command("cancel")),
    "a subject too long": Garbage(START + ".more", start()),
    "a tenant in capitals": Garbage("cmd.new.any.cli.Acme.inbox.r1.start", start()),
    "a run that is too long": Garbage(f"cmd.new.any.cli.t.inbox.{'r' * 200}.start", start()),
    "a signal for no run": signal({"event": "DraftApproved", "body": {"by": "p"}}),
    "a signal of an unknown event": signal({"event": "Nope", "body": {}}),
    "a cancel for no run": cancel(),
    "a command that expired": cancel(expires_at=1),
    "an id that is no token": cancel(id="a b.> *"),
    "an id of other letters": cancel(id="é\u2028"),
    "an id with line breaks": cancel(id="a\r\nb"),
    "an empty id": cancel(id=""),
    "an id that is too long": cancel(id="a" * 900_000),
    "an actor that is too long": cancel(actor="a" * 1_048_300),
    "an event that is too long": signal({"event": "a" * 1_048_200, "body": {}}),
    "headers that are too long": Garbage(START, b"x", {"A-B": "c" * 65_400}),
    "headers of a server": Garbage(START, b"x1", {"Nats-Expected-Stream": "COMMANDS", "A-B": "c"}),
    "a header of other letters": Garbage(START, b"x2", {"X-Name": "Zoë 你好"}),
    "a move to nowhere": Garbage(command_subject(RUN, "move", issuer="cli"), command("move", {"to": "heaven"})),
}  # fmt: skip


@asynccontextmanager
async def narrow(installation: Installation) -> AsyncIterator[Walker]:
    """A walker with so few slots that one which is never freed would be noticed; it stops when an actor breaks."""
    agent, provides = mail_agent(installation.settings)
    options = WalkerOptions(strict=True, slots=2, ctl_slots=2, pull_s=0.2)
    nats_url, ack_wait_s = installation.addresses.nats_url, installation.settings.ack_wait_s
    async with walker_ports(
        installation.wiring, nats_url, ack_wait_s=ack_wait_s, exclusive=False, on_lost=lambda: walker.claims_lost()
    ) as ports:
        walker = Walker([agent], ports, provides=provides, options=options)
        running = asyncio.create_task(walker.run())
        yield walker
        await walker.stop()
        await asyncio.wait_for(running, DEADLINE_S)


class Answers:
    """What came back, by case."""

    def __init__(self) -> None:
        self.got: dict[str, Answer] = {}

    async def receive(self, message: Msg) -> None:
        case = message.subject.rpartition(".")[2]
        self.got[case] = msgspec.json.decode(message.data, type=Answer)


@asynccontextmanager
async def client(url: str) -> AsyncIterator[Client]:
    connected = await nats.connect(url)
    try:
        yield connected
    finally:
        await connected.close()


async def test_garbage_is_answered_and_kept_and_a_mail_behind_it_walks(
    clean_nats: NatsUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    answers = Answers()
    async with installed(clean_nats) as installation, client(clean_nats.url) as outside, narrow(installation) as walker:
        await outside.subscribe("_INBOX.garbage.*", cb=answers.receive)
        for number, one in enumerate(GARBAGE.values()):
            headers = {**one.headers, REPLY: f"_INBOX.garbage.{number}"}
            await outside.jetstream().publish(one.subject, one.payload, headers=headers)
        key = await publish_mail(outside)
        async with asyncio.timeout(DEADLINE_S):
            while len(answers.got) < len(GARBAGE) and not walker.stopping:  # noqa: ASYNC110 - they come when they come
                await asyncio.sleep(0.02)
        if not walker.stopping:
            assert len(await until_done(installation, [key])) == 1
        kept = [(await outside.jetstream().stream_info(stream)).state.messages for stream in ("DEAD", "AUDITIN")]

    accepted = [name for number, name in enumerate(GARBAGE) if answers.got[str(number)].ok]
    assert accepted == []
    assert sum(kept) == len(GARBAGE)


async def test_the_answer_to_a_command_that_cannot_be_stored_names_it(clean_nats: NatsUnderTest) -> None:
    """Who gave many commands has to know which one was rejected; its id stands in the message's headers."""
    answers = Answers()
    headers = {REPLY: "_INBOX.garbage.big", MSG_ID: "too-big"}
    async with installed(clean_nats) as installation, client(clean_nats.url) as outside, narrow(installation):
        await outside.subscribe("_INBOX.garbage.*", cb=answers.receive)
        big = command(payload=big_mail(800_000), id="too-big")
        await outside.jetstream().publish(START, big, headers=headers)
        async with asyncio.timeout(DEADLINE_S):
            while not answers.got:  # noqa: ASYNC110 - it comes when it comes
                await asyncio.sleep(0.02)
    assert not answers.got["big"].ok and answers.got["big"].command == "too-big"


async def test_an_answer_goes_to_an_inbox_only(clean_nats: NatsUnderTest) -> None:
    """The reply subject comes from outside, and a walker may write where its commander may not."""
    async with installed(clean_nats) as installation, client(clean_nats.url) as outside, narrow(installation):
        key = await publish_mail(outside, reply=f"state.g1.00.t.inbox.{'x' * 26}")
        await publish_mail(outside, number=8, reply="trace.t.x y\r\nPUB a 0")
        await until_done(installation, [key])
        info = await outside.jetstream().stream_info(state_stream(), subjects_filter="state.g1.00.t.inbox.>")
        assert sorted(info.state.subjects or {}) == sorted(s for s in info.state.subjects or {} if "xxxx" not in s)


async def publish_mail(outside: Client, number: int = 7, reply: str | None = None) -> RunKey:
    """A mail that walks five steps."""
    mail = mail_start(MAIL % {b"number": number}, tenant="t", mailbox="inbox", received_at=_now())
    headers = {REPLY: reply.replace("\r\n", " ")} if reply is not None else {}
    payload = command(payload=msgspec.Raw(msgspec.json.encode(mail.payload)), id=f"mail-{number}")
    await outside.jetstream().publish(command_subject(mail.key, "start", issuer="cli"), payload, headers=headers)
    return mail.key
