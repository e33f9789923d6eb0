"""Who waits for no answer."""

import pytest
from tests.unit.inbox.mails import raw

from waybook.inbox.intake.parse import parse_mail

AUTOMATED = [
    "Auto-Submitted: auto-replied",
    "Auto-Submitted: auto-generated; reason=x",
    "Auto-Submitted: no\nAuto-Submitted: auto-notified",
    "Precedence: bulk",
    "Precedence: LIST",
    "Precedence: junk",
    "Precedence: auto_reply",
    "List-Id: <news.customer.example>",
    "X-Autoreply: yes",
    "X-Auto-Response-Suppress: All",
    "Return-Path: <>",
    "Return-Path: < >",
    "Sender: MAILER-DAEMON@mx.example",
    "Content-Type: multipart/report; boundary=x",
]
PEOPLE = [
    "Auto-Submitted: no",
    "Auto-Submitted: NO (really)",
    "Auto-Submitted:",
    "Precedence: first-class",
    "Return-Path: <bo@customer.example>",
    "X-Auto-Response-Suppress: None",
    "X-Autoreply: no",
    "List-Unsubscribe: <https://x.example>",
]


@pytest.mark.parametrize("header", AUTOMATED)
def test_marked_mail_is_automated(header: str) -> None:
    """Each of the marks is enough by itself."""
    assert parse_mail(raw(f"From: Bo <bo@customer.example>\n{header}", "Away.")).automated


@pytest.mark.parametrize("header", PEOPLE)
def test_unmarked_mail_is_a_person(header: str) -> None:
    """A person gets an answer."""
    assert parse_mail(raw(f"From: Bo <bo@customer.example>\n{header}", "Hello.")).automated is None


def test_our_own_mail_is_not_answered() -> None:
    """Whatever the case of the address."""
    data = raw("From: Help <Help@Ours.example>", "x")
    assert parse_mail(data, ("help@ours.example",)).automated == "sent from our own address Help@ours.example"
    assert parse_mail(data).automated is None
