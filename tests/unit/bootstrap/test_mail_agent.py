"""What the settings give the built-in agent."""

from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.scan.scan import security_scan
from waybook.inbox.settings import InboxSettings
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.settings import Settings

MAIL = (
    b"Authentication-Results: %s; dmarc=%s header.from=customer.example\nFrom: Ann <ann@customer.example>\n"
    b"Subject: Chair\n\nWhere is my chair?\n"
)


async def _verification(settings: Settings, server: bytes, word: bytes) -> str:
    given = mail_agent(settings)[1][InboxSettings]
    result, _ = await security_scan(parse_mail(MAIL % (server, word)), now=0, settings=given.scan)
    return result.security_flags.sender_verification


async def test_only_the_named_receivers_vouch_for_a_sender() -> None:
    """A header that the sender wrote into the mail says nothing, and without receivers nothing can be said."""
    settings = Settings.load({"WAYBOOK_RECEIVERS": "mx.shop.example, mx2.shop.example", "WAYBOOK_CONFIG": ""})
    assert await _verification(settings, b"mx2.shop.example", b"pass") == "verified"
    assert await _verification(settings, b"mx.shop.example", b"fail") == "unverified"
    assert await _verification(settings, b"mx.evil.example", b"pass") == "unverified"
    assert await _verification(Settings(), b"mx.shop.example", b"fail") == "unknown"


def test_our_hosts_reach_the_scan() -> None:
    """They are compared in lower case."""
    settings = Settings.load({"WAYBOOK_OWN_HOSTS": "Shop.example,shop.example.org"})
    assert mail_agent(settings)[1][InboxSettings].scan.own_hosts == {"shop.example", "shop.example.org"}
