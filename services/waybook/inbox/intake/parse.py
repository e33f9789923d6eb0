"""`parse_mail`: bytes to ParsedMail, for every input.

The parser is the standard library's with its `compat32` policy, which keeps headers as they came and raised on none
of the test corpus; everything that it leaves to the reader (charsets, words, addresses, dates) is done here.
"""

import html
import re

import msgspec

from waybook.inbox.intake import calendar, headers
from waybook.inbox.intake.automated import automated_reason
from waybook.inbox.intake.charsets import decode_bytes
from waybook.inbox.intake.delivery import delivery_report
from waybook.inbox.intake.mail import MAX_MAIL_BYTES, Address, BodySource, ParsedMail
from waybook.inbox.intake.parts import MAX_TEXT, Parts
from waybook.inbox.intake.raw_policy import Part, parse_bytes

KEPT_HEADERS = (
    "from", "auto-submitted", "list-id", "list-unsubscribe", "precedence", "x-auto-response-suppress", "x-autoreply",
    "x-autorespond", "x-autoresponder", "x-mail-autoreply", "x-auto-reply-from", "return-path", "content-type",
    "authentication-results", "received-spf", "importance", "x-priority", "content-language", "x-mailer",
    "x-spam-flag", "x-spam-status", "x-failed-recipients",
)  # fmt: skip
NO_TEXT = "no readable text"
ODD_ID = "the Message-ID has an unusual form"
_LOSSLESS = frozenset({"no From header", "no Date header", "no Message-ID header", ODD_ID, NO_TEXT})
_BLANK = re.compile(r"[\s\u00a0\u200b-\u200f\u2060\ufeff\u00ad\u034f]*")
_TAGS = re.compile(r"(?s)<(?:style|script|title)\b.*?</(?:style|script|title)\s*>|<!--.*?-->|<[^>]*>")


def parse_mail(raw: bytes, own_addresses: tuple[str, ...] = ()) -> ParsedMail:
    """What can be read from `raw`. Never raises; whatever went wrong stands in `defects`."""
    return parse_with_files(raw, own_addresses)[0]


def parse_with_files(raw: bytes, own_addresses: tuple[str, ...] = ()) -> tuple[ParsedMail, dict[str, bytes]]:
    """`parse_mail`, and beside it the contents of the attachments by their digest."""
    defects: list[str] = []
    if len(raw) > MAX_MAIL_BYTES:
        defects.append(f"mail of {len(raw)} bytes, read up to {MAX_MAIL_BYTES}")
        raw = raw[:MAX_MAIL_BYTES]
    parts = Parts(defects)
    try:
        message = parse_bytes(raw)
        parts.add(message)
    except (Exception, RecursionError):  # noqa: BLE001 - a hostile mail must not stop the ones behind it
        defects.append("structure could not be read, taken as plain text")
        parts = Parts(defects)
        message = _headers_only(raw)
        parts.plain.append(decode_bytes(raw[: 4 * MAX_TEXT], None)[0][:MAX_TEXT])
    mail = _assemble(message, parts, defects)
    return msgspec.structs.replace(mail, automated=automated_reason(mail, own_addresses)), parts.files


def _headers_only(raw: bytes) -> Part:
    head = re.split(rb"\r?\n\r?\n", raw[:65_536], maxsplit=1)[0]
    try:
        return parse_bytes(head + b"\n\n")
    except Exception:  # noqa: BLE001 - then the mail has no headers at all
        return parse_bytes(b"")


def _assemble(message: Part, parts: Parts, defects: list[str]) -> ParsedMail:
    values = _values(message)

    def all_of(name: str) -> list[str]:
        return values.get(name, [])

    def one_of(name: str) -> str:
        if len(all_of(name)) > 1:
            defects.append(f"{len(all_of(name))} {name.title()} headers, the first counts")
        return next(iter(all_of(name)), "")

    authors = headers.decode_addresses(all_of("from")[:1], defects, "From")
    senders = headers.decode_addresses(all_of("sender")[:1], defects, "Sender")
    one_of("from")
    date_text = one_of("date")
    ids = headers.message_ids(one_of("message-id"))
    if ids and not headers.is_usual_id(ids[0]):
        defects.append(ODD_ID)
    text, markup, source = _body(parts)
    return ParsedMail(
        author=next(iter(authors), None) or _nameless(all_of("from")),
        sender=next(iter(senders), None),
        to=headers.decode_addresses(all_of("to"), defects, "To"),
        cc=headers.decode_addresses(all_of("cc"), defects, "Cc"),
        reply_to=headers.decode_addresses(all_of("reply-to"), defects, "Reply-To"),
        subject=headers.decode_header(one_of("subject"), defects, "Subject"),
        date=headers.decode_date(date_text, defects) if date_text.strip() else None,
        date_text=headers.one_line(date_text)[:200],
        message_id=next(iter(ids), None),
        in_reply_to=next(iter(headers.message_ids(one_of("in-reply-to"))), None),
        references=tuple(headers.message_ids(" ".join(all_of("references"))))[:100],
        text=text,
        html=markup,
        body_source=source,
        other_text=tuple(t for t in parts.other if t.strip()),
        attachments=tuple(parts.attachments),
        invitation=parts.invitation,
        delivery=delivery_report(parts.delivery, parts.original_id),
        headers=_kept(values),
        defects=tuple(dict.fromkeys([*_missing(values, source), *defects]))[:50],
    )


def _nameless(values: list[str]) -> Address | None:
    """The author of a From without an address: known by name, and nobody to answer."""
    name = headers.decode_header(values[0], [])[:200] if values else ""
    return Address(name, "") if name else None


def _values(message: Part) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in message.raw_items():
        values.setdefault(name.strip().lower(), []).append(str(value))
    return values


def _kept(values: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(headers.decode_header(v, [])[:2000] for v in values[name][:20])
        for name in KEPT_HEADERS
        if name in values
    }


def _missing(values: dict[str, list[str]], source: BodySource) -> list[str]:
    missing = [f"no {name} header" for name in ("From", "Date", "Message-ID") if name.lower() not in values]
    return [*missing, *([NO_TEXT] if source == "none" else [])]


def is_damaged(mail: ParsedMail) -> bool:
    """Whether reading the mail may have lost something; a missing header or body loses nothing."""
    return any(defect not in _LOSSLESS for defect in mail.defects)


def _body(parts: Parts) -> tuple[str | None, str | None, BodySource]:
    """Text and HTML of the mail, and which of them a reader reads."""
    text = "\n\n".join(t for t in parts.plain if not is_blank(t)) or None
    markup = "\n".join(t for t in parts.html if t.strip()) or None
    if text is None and parts.tnef_text:
        return "\n\n".join(parts.tnef_text), markup, "tnef"
    if markup is not None and not is_blank(html.unescape(_TAGS.sub(" ", markup[: 4 * 65_536]))):
        return text, markup, "html"
    if text is not None:
        return text, markup, "plain"
    if parts.invitation is not None:
        return calendar.invitation_text(parts.invitation), markup, "calendar"
    return None, markup, "none"


def is_blank(text: str) -> bool:
    """Whether a reader sees nothing in `text`: blanks and invisible characters only."""
    return _BLANK.fullmatch(text) is not None
