"""Run ids: the same mail is the same run, however it came."""

from tests.unit.inbox.mails import raw

from waybook.events.subjects import run_id
from waybook.inbox.intake.canonical import (
    canonical_content,
    content_digest,
    mail_run_id,
    reused_mail_run_id,
    thread_root,
    thread_token,
)
from waybook.inbox.intake.parse import parse_mail

MAIL = b"From: a@b.example\r\nSubject: x\r\nX-Received: kept\r\n\r\nReceived: in the body stays\r\n"
TRANSPORT = (
    b"Return-Path: <a@b.example>\r\nReceived: from mx\r\n\tby other; now\r\nDELIVERED-TO: me\r\n"
    b"ARC-Seal: i=1;\r\n a=b\r\nAuthentication-Results: mx; spf=pass\r\n"
)


def test_transport_headers_and_line_ends_do_not_count() -> None:
    """Two deliveries of one mail have one content; the body is left alone."""
    assert canonical_content(TRANSPORT + MAIL) == canonical_content(MAIL.replace(b"\r\n", b"\n"))
    assert canonical_content(MAIL) == MAIL.replace(b"\r\n", b"\n").rstrip(b"\n")
    assert content_digest(TRANSPORT + MAIL) == content_digest(MAIL)
    assert content_digest(MAIL) != content_digest(MAIL + b"more")


def test_the_run_id_goes_by_message_id_or_content() -> None:
    """Tenant and mailbox belong to it; without an id the content does its work."""
    data = raw("From: a@b.example\nMessage-ID: < A@b.example >", "x")
    mail = parse_mail(data)
    assert mail_run_id(data, mail, tenant="t") == run_id("t", "inbox", "A@b.example")
    assert mail_run_id(data, mail, tenant="t", mailbox="other") != mail_run_id(data, mail, tenant="t")
    assert mail_run_id(MAIL, parse_mail(MAIL), tenant="t") == mail_run_id(
        TRANSPORT + MAIL, parse_mail(TRANSPORT + MAIL), tenant="t"
    )
    assert reused_mail_run_id(data, mail, tenant="t") not in (
        mail_run_id(data, mail, tenant="t"),
        reused_mail_run_id(data + b"y", mail, tenant="t"),
    )


def test_the_thread_goes_by_references_then_reply_then_own_id() -> None:
    """A mail without any id is a thread of its own, and an empty id never joins anything."""
    both = parse_mail(raw("Message-ID: <c@x>\nIn-Reply-To: <b@x>\nReferences: <a@x>\n <b@x>", ""))
    assert thread_root(both) == "a@x"
    assert thread_root(parse_mail(raw("Message-ID: <c@x>\nIn-Reply-To: <b@x>", ""))) == "b@x"
    assert thread_root(parse_mail(raw("Message-ID: <c@x>\nIn-Reply-To: ", ""))) == "c@x"
    tokens = {
        thread_token(r, parse_mail(r), tenant="t")
        for r in (raw(f"From: a{n}@b.example\nMessage-ID:", "x") for n in range(3))
    }
    assert len(tokens) == 3
