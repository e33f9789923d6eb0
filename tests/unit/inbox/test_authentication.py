"""Only our own receiver's word counts, and only for the domain in From."""

import pytest
from tests.unit.inbox.mails import raw

from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.scan.authentication import verify_sender

OURS = ("mx.shop.example",)
FORGED = "Authentication-Results: mx.shop.example; spf=pass smtp.mailfrom=customer.example; dkim=pass header.d=customer.example"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("Authentication-Results: mx.shop.example; spf=pass smtp.mailfrom=ana@customer.example", "verified"),
        ("Authentication-Results: mx.shop.example; dkim=pass header.d=mail.customer.example", "verified"),
        ("Authentication-Results: mx.shop.example; dmarc=pass (p=reject) header.from=customer.example", "verified"),
        ("Authentication-Results: mx.shop.example; spf=pass smtp.mailfrom=bad.example; dkim=none", "unverified"),
        (
            f"Authentication-Results: mx.shop.example; spf=fail smtp.mailfrom=bad.example; dkim=none\n{FORGED}",
            "unverified",
        ),
        ("Authentication-Results: mx.evil.example; dkim=pass header.d=customer.example", "unverified"),
        (
            "Authentication-Results: mx.shop.example; dkim=fail header.d=customer.example; spf=pass smtp.mailfrom=bad.example",
            "unverified",
        ),
        ("X-Other: 1", "unverified"),
    ],
)
def test_a_pass_vouches_for_its_own_domain_only(headers: str, expected: str) -> None:
    """The topmost header of our receiver decides; others may have been written by anybody."""
    mail = parse_mail(raw(f"{headers}\nFrom: Ana <ana@customer.example>", "x"))
    assert verify_sender(mail, OURS) == expected


def test_without_a_configured_receiver_nothing_is_known() -> None:
    """And a mail without an address is never verified."""
    assert verify_sender(parse_mail(raw("From: a@b.example", "x")), ()) == "unknown"
    assert verify_sender(parse_mail(raw("From: nobody", "x")), OURS) == "unverified"
