"""The built-in agent survives a death at every boundary, as the crash kit sees it."""

from pathlib import Path

import msgspec
import pytest

from waybook.inbox.agent import Inbox
from waybook.inbox.events import MailReceived
from waybook.inbox.starting import mail_start
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.settings import Settings
from waybook.testing.kit import CrashKit, OtherSide, approve

SAMPLES = Path(__file__).parents[2] / "samples" / "mail"
ENDS = {
    "01-invoice-question.eml": "draft_ready",
    "10-hidden-orders.eml": "quarantined",
    "11-newsletter.eml": "archived",
}


@pytest.mark.parametrize("name", ENDS)
def test_a_mail_ends_where_it_would_have_ended(name: str) -> None:
    """Killed at any boundary, a mail of each kind rests where it rests undisturbed, and no step ran twice."""
    given = mail_start((SAMPLES / name).read_bytes(), tenant="test", mailbox="inbox", received_at=1_800_000_000_000)
    start = msgspec.json.decode(given.payload.body, type=MailReceived)
    kit = CrashKit([Inbox], start=start, provides=lambda: mail_agent(Settings())[1])
    report = kit.check()
    report.expect_none()
    assert report.state == ENDS[name]


def test_an_approved_reply_leaves_once_whatever_dies() -> None:
    """Killed at any boundary of the way to `sent`, the reply leaves once, and only after it was approved."""
    mail = (SAMPLES / "01-invoice-question.eml").read_bytes()
    given = mail_start(mail, tenant="test", mailbox="inbox", received_at=1_800_000_000_000)
    start = msgspec.json.decode(given.payload.body, type=MailReceived)
    kit = CrashKit(
        [Inbox],
        start=start,
        then=[approve()],
        provides=lambda: mail_agent(Settings())[1],
        effects=lambda: {"mail": OtherSide()},
    )
    report = kit.check()
    report.expect_none()
    assert report.state == "sent"
