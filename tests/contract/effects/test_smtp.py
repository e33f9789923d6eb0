"""Mail servers that drop the connection before and after they accept, answer late, refuse, or are down."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.effects.calls import PassesBeforeTheWrite, call, in_time
from tests.contract.effects.mail_server import Fault, MailServer, hangs_up_within_the_mail, mail_server

from waybook.adapters.effects.journal import ImapJournal
from waybook.adapters.effects.mail import mail_of
from waybook.adapters.effects.smtp import SmtpSend
from waybook.adapters.memory.objects import MemoryObjects
from waybook.agents.effects import DeadlinePassed, Done, EffectCall, NotDone, NotThere, Unsure

ASKED = call(to=["Ana <ana@customer.example>"], subject="Your question", text="It ships today.\n.\n..and a dot")
IDENTITY = "<waybook-k1.r@shop.example>"


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with mail_server(MailServer()) as running:
        yield running


def sender_to(server: MailServer, *, journal: bool = True, password: str = "p", **options: Any) -> SmtpSend:
    kept = ImapJournal(
        "127.0.0.1", server.imap_port, username="u", password=password, is_complete=True, tls=False, timeout_s=5
    )
    return SmtpSend(
        "127.0.0.1", server.port, sender="Shop <help@shop.example>", tls="none", journal=kept if journal else None,
        **options,
    )  # fmt: skip


async def test_a_mail_leaves_once_and_whole(server: MailServer) -> None:
    answer = await sender_to(server).call(ASKED, in_time())
    assert isinstance(answer, Done) and answer.evidence["message_id"] == IDENTITY
    (mail,) = server.taken
    assert mail.get_content().replace("\r\n", "\n") == "It ships today.\n.\n..and a dot\n"
    assert (str(mail["To"]), str(mail["From"])) == ("Ana <ana@customer.example>", "Shop <help@shop.example>")
    assert server.recipients == [["ana@customer.example"]] and server.message_ids == [IDENTITY]


@pytest.mark.parametrize(("fault", "left"), [("drop_before", 0), ("drop_after", 1), ("late", 1)])
async def test_between_the_dot_and_the_answer_nobody_knows_but_the_journal(
    server: MailServer, fault: Fault, left: int
) -> None:
    server.fault = fault
    answer = await sender_to(server).call(ASKED, in_time(0.2 if fault == "late" else 10))
    assert isinstance(answer, Unsure)
    assert len(server.taken) == left
    found = await sender_to(server).find(ASKED)
    evidence = {"message_id": IDENTITY}
    assert found == (Done(evidence) if left else NotThere(evidence))
    if fault == "late":
        await asyncio.sleep(server.late_s)


async def test_before_the_dot_it_surely_did_not_leave() -> None:
    """The connection breaks while the mail is on its way."""
    async with hangs_up_within_the_mail() as port:
        large = call(to="a@b.example", text="x" * 70 + "\n", attachments=[
            {"name": "big", "base64": base64.b64encode(bytes(8_000_000)).decode()},
        ])  # fmt: skip
        answer = await SmtpSend("127.0.0.1", port, sender="help@shop.example", tls="none").call(large, in_time())
        assert isinstance(answer, NotDone) and answer.retryable


@pytest.mark.parametrize(("fault", "again"), [("451", True), ("554", False)])
async def test_a_refusal_is_believed(server: MailServer, fault: Fault, again: bool) -> None:
    server.fault = fault
    answer = await sender_to(server).call(ASKED, in_time())
    assert isinstance(answer, NotDone) and answer.retryable == again
    assert server.taken == []


async def test_all_recipients_or_none(server: MailServer) -> None:
    server.refused = "gone@customer.example"
    asked = call(to=["ana@customer.example"], cc=["gone@customer.example"], text="x")
    answer = await sender_to(server).call(asked, in_time())
    assert isinstance(answer, NotDone) and not answer.retryable and "550" in answer.text
    assert server.taken == []


@pytest.mark.parametrize(("mark", "asks"), [("auto-replied", "OOF, AutoReply"), ("no", None), (None, None)])
async def test_an_automatic_mail_asks_machines_not_to_answer(
    server: MailServer, mark: str | None, asks: str | None
) -> None:
    """And only such a mail; reports of its delivery are not asked to stay away."""
    await sender_to(server).call(call(to=["ana@customer.example"], text="x", auto_submitted=mark), in_time())
    (headers,) = server.taken
    assert (headers["Auto-Submitted"], headers["X-Auto-Response-Suppress"]) == (mark, asks)


async def test_a_server_that_is_down_surely_did_nothing() -> None:
    async with mail_server(MailServer()) as gone:
        port = gone.port
    adapter = SmtpSend("127.0.0.1", port, sender="help@shop.example", tls="none")
    answer = await adapter.call(ASKED, in_time())
    assert isinstance(answer, NotDone) and answer.retryable


async def test_the_dot_is_not_written_after_the_deadline(server: MailServer) -> None:
    """Everything before it may be."""
    with pytest.raises(DeadlinePassed):
        await sender_to(server).call(ASKED, PassesBeforeTheWrite(5_000))
    assert server.taken == []


async def test_without_a_journal_a_person_has_to_say(server: MailServer) -> None:
    adapter = sender_to(server, journal=False)
    answer = await adapter.find(ASKED)
    assert isinstance(answer, Unsure) and not answer.again and not adapter.find_is_authoritative


@pytest.mark.parametrize("broken", ["away", "wrong password"])
async def test_a_journal_that_does_not_answer_is_asked_again(server: MailServer, broken: str) -> None:
    server.imap_answers = broken != "away"
    answer = await sender_to(server, password="wrong" if broken != "away" else "p").find(ASKED)
    assert isinstance(answer, Unsure) and answer.again


async def test_the_very_bytes_that_were_approved_leave(server: MailServer) -> None:
    """They keep their Message-ID, or get the operation's."""
    objects = MemoryObjects()
    given = (
        b"From: help@shop.example\r\nTo: ana@customer.example\r\nSubject: =?utf-8?q?gr=C3=BC=C3=9Fe?=\r\n\r\nHello\r\n"
    )
    await objects.put("draft", given)
    digest = hashlib.sha256(given).hexdigest()
    asked = call(to=["ana@customer.example"], artifact="draft", sha256=digest)
    assert isinstance(await sender_to(server, objects=objects).call(asked, in_time()), Done)
    assert server.message_ids == [IDENTITY] and str(server.taken[0]["Subject"]) == "grüße"
    await objects.put("draft", b"Message-ID: <own@x>\r\n" + given)
    changed = await sender_to(server, objects=objects).call(asked, in_time())
    assert isinstance(changed, NotDone) and not changed.retryable
    own = call(to=["ana@customer.example"], artifact="draft")
    assert isinstance(await sender_to(server, objects=objects).call(own, in_time()), Done)
    assert server.message_ids[1] == "<own@x>"


@pytest.mark.parametrize(
    "params",
    [
        {"text": "to nobody"},
        {"to": ["a@b.example\r\nBcc: c@d.example"], "text": "x"},
        {"to": ["a@b.example, c@d.example"], "text": "x"},
        {"to": [3], "text": "x"},
        {"to": ["a@b.example"], "subject": "x\r\nBcc: c@d.example", "text": "x"},
        {"to": ["a@b.example"], "in_reply_to": "<x@y>\r\nBcc: c@d.example", "text": "x"},
        {"to": ["a@b.example"], "references": "<x@y>\nBcc: c@d.example", "text": "x"},
        {"to": ["a@b.example"], "text": "x", "attachments": ["a"]},
        {"to": ["a@b.example"], "artifact": "gone"},
    ],
)
async def test_what_is_no_mail_is_not_sent(server: MailServer, params: dict[str, Any]) -> None:
    """Parameters may be a model's: no header and no recipient comes in by a line end."""
    answer = await sender_to(server, objects=MemoryObjects()).call(call(**params), in_time())
    assert isinstance(answer, NotDone) and not answer.retryable
    assert server.taken == []


async def test_attachments_and_html_come_along(server: MailServer) -> None:
    asked = call(
        to=["ana@customer.example"], text="see", html="<b>see</b>", in_reply_to="<q@customer.example>",
        attachments=[{"name": "r.pdf", "type": "application/pdf", "base64": "JVBERg=="}],
    )  # fmt: skip
    assert isinstance(await sender_to(server).call(asked, in_time()), Done)
    (mail,) = server.taken
    (attached,) = mail.iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == ("r.pdf", b"%PDF")
    assert str(mail["In-Reply-To"]) == "<q@customer.example>"


def _named(**params: Any) -> EffectCall:
    return EffectCall("t.inbox." + "r" * 26, "k", "mail", {"to": ["ana@c.example"], **params}, "k" * 32)


async def test_a_message_id_stands_on_one_line_however_long() -> None:
    """A folded one is not found by servers that search headers by their text, and the mail would leave once more; and in
    encoded words, which longer lines of ids would become, no mail program finds a conversation."""
    ids = [f"<{number}{'q' * 90}@x.example>" for number in range(3)]
    asked = _named(in_reply_to=ids[-1], references=" ".join(ids))
    mail = await mail_of(asked, "us@a-rather-long-host-name.example.org", None)
    assert f"Message-ID: {mail.message_id}\r\n".encode() in mail.data
    assert f"In-Reply-To: {ids[-1]}\r\n".encode() in mail.data
    assert f"References: {ids[0]}\r\n {ids[1]}\r\n {ids[2]}\r\n".encode() in mail.data


async def test_an_id_that_no_header_may_hold_is_left_out_and_the_answer_leaves(server: MailServer) -> None:
    """Senders write what they like into a Message-ID: other letters, or a thousand of them."""
    strange = "<größe@x.example>"
    asked = _named(in_reply_to=strange, references=f"<a@x.example> {strange} <{'q' * 990}@x.example>", text="x")
    assert isinstance(await sender_to(server).call(asked, in_time()), Done)
    (mail,) = server.taken
    assert (mail["In-Reply-To"], str(mail["References"])) == (None, "<a@x.example>")


async def test_letters_beyond_ascii_leave_in_seven_bits(server: MailServer) -> None:
    """Eight may be sent only to a server that was asked for it; names and subjects are encoded words."""
    text = "Grüße\n.\nund 漢字"
    asked = _named(subject="Re: Größe 漢字", text=text, html=f"<p>{text}</p>")
    adapter = SmtpSend("127.0.0.1", server.port, sender="Hilfe für Ä <help@shop.example>", tls="none")
    assert isinstance(await adapter.call(asked, in_time()), Done)
    data = (await mail_of(asked, "Hilfe für Ä <help@shop.example>", None)).data
    assert data.isascii() and b"\n" not in data.replace(b"\r\n", b"")
    (mail,) = server.taken
    assert (str(mail["Subject"]), str(mail["From"])) == ("Re: Größe 漢字", "Hilfe für Ä <help@shop.example>")
    body = mail.get_body(("plain",))
    assert body is not None and body.get_content().replace("\r\n", "\n") == f"{text}\n"
