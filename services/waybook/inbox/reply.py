"""The reply as it will leave: what people approve, word for word, and what the mail server is given."""

from typing import Any

import msgspec

from waybook.engine.digest import canonical_digest
from waybook.engine.run import Run
from waybook.inbox.intake.headers import OVERSIZED
from waybook.inbox.scan.hosts import ascii_address

EFFECT = "mail"
"""The name of the side effect by which replies leave."""

MOST_REFERENCES = 20


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parameters of the mail. `references` and `in_reply_to` are header values, angle brackets included.

    Sender, date and Message-ID are the mail server's side of it: the address is configured there, and the Message-ID is
    made of the operation's key, so that each attempt at one reply carries the same.
    """

    to: tuple[str, ...]
    subject: str
    text: str
    html: str | None = None
    in_reply_to: str | None = None
    references: str | None = None
    auto_submitted: str = "auto-replied"

    def params(self) -> dict[str, Any]:
        """As the side effect takes it; the mark of an automatic answer always stands (RFC 3834)."""
        given: dict[str, Any] = msgspec.to_builtins(self)
        return {**given, "auto_submitted": self.auto_submitted}

    @property
    def digest(self) -> str:
        """What an approval of this reply covers."""
        return canonical_digest(self.params())


class _Author(msgspec.Struct, frozen=True):
    address: str = ""


class _Mail(msgspec.Struct, frozen=True):
    author: _Author | None = None
    message_id: str | None = None
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()


class _Received(msgspec.Struct, frozen=True):
    """What a reply needs of the start event."""

    mail: _Mail = _Mail()


_received = msgspec.json.Decoder(_Received).decode


def author_of(run: Run) -> str:
    """The author's address, as intake recorded it; empty where there is none."""
    author = _received(run.log[0].payload).mail.author
    return author.address if author is not None else ""


def reply_of(run: Run) -> Reply | None:
    """The reply that the run's draft makes; None without a draft. `to` is empty where nobody can be answered.

    It goes to the author recorded at intake and to nobody else, whatever Reply-To asks for.
    """
    text = run.fields.get("draft_response")
    if not text:
        return None
    mail = _received(run.log[0].payload).mail
    to = ascii_address(mail.author.address) if mail.author is not None else ""
    before = mail.references or ((mail.in_reply_to,) if mail.in_reply_to else ())
    own = mail.message_id if mail.message_id is not None and _is_sendable(mail.message_id) else None
    chain = [one for one in (*before, own) if one is not None and _is_sendable(one)]
    return Reply(
        to=(to,) if to else (),
        subject=run.fields.get("draft_subject") or "",
        text=text,
        html=run.fields.get("draft_html"),
        in_reply_to=f"<{own}>" if own is not None else None,
        references=" ".join(f"<{one}>" for one in _shortened(chain)) or None,
    )


def _is_sendable(message_id: str) -> bool:
    """Whether a header may name it: what is no ASCII, or only the digest of an id that was too long, helps nobody."""
    known = message_id.isascii() and message_id.isprintable() and " " not in message_id
    return bool(message_id) and known and not message_id.startswith(OVERSIZED)


def _shortened(chain: list[str]) -> list[str]:
    """The thread's first mail and the last ones: a header line has to stay readable for mail programs."""
    unique = list(dict.fromkeys(chain))
    return unique if len(unique) <= MOST_REFERENCES else [unique[0], *unique[1 - MOST_REFERENCES :]]
