"""Mails for the tests, made from a few fields."""

from waybook.inbox.intake.json_mail import mail_bytes
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.intake.parse import parse_mail


def mail(**fields: object) -> ParsedMail:
    """A parsed mail from the fields that JSON intake takes; author and subject have defaults."""
    given = {"from": "Ann <ann@x.example>", "subject": "Question", "message_id": "m1@x.example", **fields}
    raw = mail_bytes({k: v for k, v in given.items() if v is not None})
    assert raw is not None
    return parse_mail(raw)


def raw(head: str, body: str = "", encoding: str = "latin-1") -> bytes:
    """The bytes of a mail with CRLF line ends, from its header lines and its body."""
    return f"{head.strip()}\n\n{body}".replace("\n", "\r\n").encode(encoding)
