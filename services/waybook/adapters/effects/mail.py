"""A mail as it is sent: built from parameters, the same Message-ID for every attempt at one operation.

It names the operation and the run, so that a report about the mail (a bounce, a complaint) finds the way back.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email import policy
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.utils import format_datetime, getaddresses
from typing import Any

import msgspec

from waybook.adapters.effects.content import WAYS, content_of
from waybook.agents.effects import EffectCall
from waybook.engine.ports import Objects
from waybook.events.errors import InvalidInput

_HEADERS = {
    "reply_to": "Reply-To",
    "in_reply_to": "In-Reply-To",
    "references": "References",
    "subject": "Subject",
    "auto_submitted": "Auto-Submitted",
}

_IDS = frozenset({"in_reply_to", "references"})


QUIET = "OOF, AutoReply"
"""What an automatic mail asks of Exchange servers: no vacation notes and no answers of machines; bounces may come."""


class _WholeIds(policy.EmailPolicy):
    """Leaves each Message-ID whole and on a line of its own.

    Folded, servers that search for it by its text do not find it; and a line of ids that is longer than usual (those of
    Outlook are) would become encoded words, in which no mail program finds a conversation.
    """

    def fold_binary(self, name: str, value: Any) -> bytes:
        """See EmailPolicy."""
        if name.lower() in _ID_HEADERS:
            return f"{name}: {f'{self.linesep} '.join(str(value).split())}{self.linesep}".encode("ascii")
        return super().fold_binary(name, value)


_ID_HEADERS = frozenset({"message-id", "in-reply-to", "references"})
MOST_ID = 950
"""Characters of an id that a header line may hold (RFC 5322: 998 with the header's name)."""

_WHOLE_IDS = _WholeIds(linesep="\r\n", cte_type="7bit")
"""Seven bits: eight may be sent only to servers that offer it, and be asked for (RFC 6152)."""


def sendable_ids(value: str) -> str:
    """The ids of an In-Reply-To or References value that a mail header may hold; the others are left out.

    A sender may have written any bytes into a Message-ID. An answer that leaves them out still arrives.
    """
    return " ".join(one for one in value.split() if len(one) <= MOST_ID and one.isascii() and one.isprintable())


class Mail(msgspec.Struct, frozen=True):
    """What goes to the server. `data` has CRLF line ends; recipients are bare addresses."""

    message_id: str
    sender: str
    recipients: tuple[str, ...]
    data: bytes


async def mail_of(call: EffectCall, sender: str, objects: Objects | None) -> Mail:
    """The mail that the parameters describe.

    `to`, `cc`, `bcc`: lists of addresses. Either a whole mail (`artifact` or `base64`: these very bytes are sent), or
    `subject`, `text`, `html`, `reply_to`, `in_reply_to`, `references`, `auto_submitted`, and `attachments`: a list of `name`, `type`
    and a content. `from` is `sender` unless given. Raises InvalidInput, PortError.
    """
    params = call.params
    recipients = tuple(a for field in ("to", "cc", "bcc") for a in _addresses(params, field))
    if not recipients:
        raise InvalidInput("a mail needs somebody in `to`, `cc` or `bcc`")
    origin = params.get("from") or sender
    address = _bare(origin, "from")
    identity = f"<{call.idempotency_key}.{call.run.rpartition('.')[2]}@{address.rpartition('@')[2]}>"
    if params.get("artifact") is not None or params.get("base64") is not None:
        whole = {k: v for k, v in params.items() if k in ("artifact", "base64", "sha256")}
        return _as_given(await content_of(whole, objects), identity, address, recipients)
    try:
        message = _message(params, str(origin), identity)
        for one in params.get("attachments") or ():
            await _attach(message, one, objects)
        return Mail(identity, address, recipients, message.as_bytes())
    except (MessageError, ValueError, TypeError, LookupError) as error:
        raise InvalidInput(f"the mail cannot be built: {error}") from error


def _as_given(data: bytes, identity: str, sender: str, recipients: tuple[str, ...]) -> Mail:
    """Approved bytes stay as they are; a Message-ID is put before them only where they have none."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n")
    own = BytesHeaderParser(policy=policy.compat32).parsebytes(lines).get("Message-ID")
    if own is not None:
        return Mail(" ".join(str(own).split()), sender, recipients, lines)
    return Mail(identity, sender, recipients, f"Message-ID: {identity}\r\n".encode() + lines)


def _message(params: Mapping[str, Any], origin: str, identity: str) -> EmailMessage:
    message = EmailMessage(policy=_WHOLE_IDS)
    message["From"] = origin
    for field in ("to", "cc"):
        if params.get(field):
            message[field.title()] = ", ".join(_list(params, field))
    message["Message-ID"] = identity
    message["Date"] = params.get("date") or format_datetime(datetime.now(UTC))
    for field, header in _HEADERS.items():
        given = str(params.get(field) or "")
        if field in _IDS and not _has_line_end(given):
            given = sendable_ids(given)
        if given:
            message[header] = given
    if str(params.get("auto_submitted") or "no") != "no":
        message["X-Auto-Response-Suppress"] = QUIET
    message.set_content(str(params.get("text", "")))
    if params.get("html"):
        message.add_alternative(str(params["html"]), subtype="html")
    return message


def _has_line_end(value: str) -> bool:
    """Such a value is refused as a header, not mended: it wants to be two."""
    return "\r" in value or "\n" in value


async def _attach(message: EmailMessage, one: Any, objects: Objects | None) -> None:
    if not isinstance(one, Mapping):
        raise InvalidInput("an attachment is an object with `name`, `type` and a content")
    data = await content_of({k: one.get(k) for k in (*WAYS, "sha256")}, objects)
    main, _, sub = str(one.get("type") or "application/octet-stream").partition("/")
    message.add_attachment(data, maintype=main, subtype=sub or "octet-stream", filename=str(one.get("name") or "file"))


def _list(params: Mapping[str, Any], field: str) -> Sequence[str]:
    value = params.get(field) or ()
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise InvalidInput(f"`{field}` has to be a list of addresses")
    return given


def _addresses(params: Mapping[str, Any], field: str) -> list[str]:
    return [_bare(one, field) for one in _list(params, field)]


def _bare(given: object, field: str) -> str:
    """One address out of `Name <address>`. Raises InvalidInput."""
    found = [address for _, address in getaddresses([str(given)]) if address]
    if len(found) != 1 or "@" not in found[0] or not found[0].isascii() or any(c in found[0] for c in "\r\n<> "):
        raise InvalidInput(f"`{field}` holds {str(given)!r}, which is not one address")
    return found[0]
