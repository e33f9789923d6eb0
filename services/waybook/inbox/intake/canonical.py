"""Which run a mail belongs to: its canonical content, identity, run id and thread (DESIGN 3, "Run id")."""

import hashlib
import re

from waybook.events.subjects import reused_run_id, run_id
from waybook.inbox.intake.mail import ParsedMail

# Headers that transport adds on the way: two deliveries of one mail differ in nothing else.
_TRANSPORT = re.compile(
    rb"(?im)^(?:Received|Return-Path|Delivered-To|ARC-[!-9;-~]*|Authentication-Results)[ \t]*:.*\n(?:[ \t].*\n)*"
)


def canonical_content(raw: bytes) -> bytes:
    """The raw bytes with LF line ends, without transport headers and without line ends at the end."""
    data = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw
    head, gap, body = data.partition(b"\n\n")
    return (_TRANSPORT.sub(b"", head + b"\n")[:-1] + gap + body).rstrip(b"\n")


def content_digest(raw: bytes) -> str:
    """Hex SHA-256 of the canonical content: equal for every delivery of the same mail."""
    return hashlib.sha256(canonical_content(raw)).hexdigest()


def mail_run_id(raw: bytes, mail: ParsedMail, *, tenant: str, mailbox: str = "inbox") -> str:
    """The run id of a mail: by its Message-ID, or by its canonical content where it has none."""
    return run_id(tenant, mailbox, mail.message_id or canonical_content(raw))


def reused_mail_run_id(raw: bytes, mail: ParsedMail, *, tenant: str, mailbox: str = "inbox") -> str:
    """The run id of a mail whose Message-ID another mail already carries with other content."""
    identity = mail.message_id or canonical_content(raw)
    return reused_run_id(tenant, mailbox, identity, content_digest(raw))


def thread_root(mail: ParsedMail) -> str | None:
    """The Message-ID that a mail's thread goes by: first of References, else In-Reply-To, else its own."""
    return next(iter(mail.references), None) or mail.in_reply_to or mail.message_id


def thread_token(raw: bytes, mail: ParsedMail, *, tenant: str, mailbox: str = "inbox") -> str:
    """The token of the mail's thread. A mail without any id is a thread of its own."""
    return run_id(tenant, mailbox, thread_root(mail) or canonical_content(raw))
