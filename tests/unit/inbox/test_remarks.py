"""What people are told of a mail beside its words."""

import pytest
from tests.unit.inbox.mails import mail

from waybook.inbox.events import MailReceived
from waybook.inbox.intake.headers import DAY_MS
from waybook.inbox.remarks import DATE_OFF, answer_address, remarks

NOW = 1_772_442_000_000


def received(**fields: object) -> MailReceived:
    """The start event of a mail that came in at `NOW`."""
    parsed = mail(**fields)
    return MailReceived(sender=parsed.from_text, subject=parsed.subject, mail=parsed, received_at=parsed.date or NOW)


@pytest.mark.parametrize(("off", "marked"), [(0, False), (DAY_MS, False), (DAY_MS + 1, True), (-DAY_MS - 1, True)])
def test_a_claimed_date_is_marked_when_it_is_more_than_a_day_off(off: int, marked: bool) -> None:
    """Order goes by arrival; the mark is for people."""
    event = received(date="Mon, 02 Mar 2026 09:00:00 +0000")
    assert event.mail.date is not None
    moved = MailReceived(sender="", subject="", mail=event.mail, received_at=event.mail.date + off)
    assert (DATE_OFF in remarks(moved)) is marked


def test_an_ordinary_mail_has_no_remarks() -> None:
    """Also one without a date, an id of the usual form, or a name."""
    assert remarks(received(text="Hello?")) == remarks(received(text="Hello?", date=None)) == []


@pytest.mark.parametrize(
    ("sender", "address"),
    [
        ("Ana <ana@customer.example>", "ana@customer.example"),
        ("ana@b\u00fccher.example", "ana@xn--bcher-kva.example"),
        ("ana@xn--bcher-kva.example", "ana@xn--bcher-kva.example"),
        ("No Address", ""),
    ],
)
def test_an_answer_goes_to_the_author_in_the_form_that_servers_read(sender: str, address: str) -> None:
    """Whatever Reply-To asks for."""
    event = received(**{"from": sender, "reply_to": "else@where.example"})
    assert answer_address(event.mail) == address
    assert any("xn--bcher-kva" in remark for remark in remarks(event)) is ("xn--" in address)
