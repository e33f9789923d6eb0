"""What intake reads out of a mail, and where a mail comes from."""

from typing import Literal

import msgspec

MAX_MAIL_BYTES = 25 * 1024 * 1024
"""Largest mail that intake takes (DESIGN 3)."""


class Address(msgspec.Struct, frozen=True):
    """One mailbox. `address` has its domain in lower case, its local part as written; empty where there is none."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name else self.address

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


class Attachment(msgspec.Struct, frozen=True):
    """A file in a mail. `digest` is the hex SHA-256 of its `size` bytes, by which its content is kept aside."""

    name: str
    content_type: str
    size: int
    digest: str
    inline: bool = False


class Invitation(msgspec.Struct, frozen=True):
    """The calendar part of a mail. `start` and `end` are as written, with the zone's name where one is given."""

    method: str
    title: str = ""
    start: str = ""
    end: str = ""
    zone: str = ""
    organizer: str = ""
    location: str = ""
    uid: str = ""
    answer: str = ""

    @property
    def is_notice(self) -> bool:
        """An accepted, declined or cancelled invitation: it informs and wants no reply."""
        return self.method in ("REPLY", "CANCEL")


class DeliveryReport(msgspec.Struct, frozen=True):
    """What became of a mail, as a mail server says: `action` is one of failed, delayed, delivered, relayed, expanded;
    `complained` where a recipient called it spam.

    `status` is the enhanced code (such as 5.1.1), `original_id` the Message-ID of the mail that it is about.
    """

    action: str
    recipient: str = ""
    status: str = ""
    diagnostic: str = ""
    original_id: str | None = None

    def __str__(self) -> str:
        code = f" ({self.status})" if self.status else ""
        whom = f" for {self.recipient}" if self.recipient else ", recipient not named"
        return f"{self.action}{code}{whom}"


BodySource = Literal["plain", "html", "calendar", "tnef", "none"]


class ParsedMail(msgspec.Struct, frozen=True, kw_only=True):
    """A mail as far as it could be read; what could not is said in `defects`.

    No text holds a NUL or a lone surrogate, and no header holds a line break. `message_id`, `in_reply_to` and
    `references` stand without blanks and angle brackets, case kept. `date` is what the mail claims, in
    milliseconds since the epoch, UTC; order and timers go by arrival. `other_text` is text outside the readable
    body (preamble, text after the last boundary, nested mails, delivery reports): scanned, never drafted from.
    `headers` are those that later steps ask for, by lower-case name. `automated` says why nobody waits for an answer.
    """

    author: Address | None = None
    sender: Address | None = None
    to: tuple[Address, ...] = ()
    cc: tuple[Address, ...] = ()
    reply_to: tuple[Address, ...] = ()
    subject: str = ""
    date: int | None = None
    date_text: str = ""
    message_id: str | None = None
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()
    text: str | None = None
    html: str | None = None
    body_source: BodySource = "none"
    other_text: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    invitation: Invitation | None = None
    delivery: DeliveryReport | None = None
    headers: dict[str, tuple[str, ...]] = {}
    defects: tuple[str, ...] = ()
    automated: str | None = None

    @property
    def from_text(self) -> str:
        """The author for people: name and address, or an empty text."""
        return str(self.author) if self.author else ""

    def header(self, name: str) -> str:
        """First value of a kept header, or an empty text."""
        return next(iter(self.headers.get(name.lower(), ())), "")
