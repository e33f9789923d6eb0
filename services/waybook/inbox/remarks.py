"""What a person should know of a mail before reading it: whom an answer would go to, and what is odd about it."""

from waybook.inbox.events import MailReceived
from waybook.inbox.intake.headers import DAY_MS
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.intake.parse import ODD_ID
from waybook.inbox.scan.hosts import ascii_address, pretty_host

MOST_REMARKS = 12
MOST_WORDS = 300
DATE_OFF = "the claimed date is more than a day off"
_USUAL = frozenset({"no Date header", "no Message-ID header", ODD_ID})


def answer_address(mail: ParsedMail) -> str:
    """Whom a reply would go to, its host in ASCII as servers read it; empty when there is nobody.

    Always the author: a Reply-To is a wish of whoever wrote the mail, and no proof of anything.
    """
    return ascii_address(mail.author.address) if mail.author is not None else ""


def remarks(event: MailReceived) -> list[str]:
    """Odd things about a mail, the gravest first; none for an ordinary one."""
    mail = event.mail
    found = []
    if mail.author is not None and pretty_host(mail.author.domain).isascii() is False:
        found.append(f"the sender's host {pretty_host(mail.author.domain)} is {ascii_address(mail.author.domain)}")
    if mail.date is not None and abs(mail.date - event.received_at) > DAY_MS:
        found.append(DATE_OFF)
    found.extend(defect for defect in mail.defects if defect not in _USUAL)
    return [text[:MOST_WORDS] for text in found[:MOST_REMARKS]]
