"""From a mail's bytes to the command that starts its run. Pure: what goes to the object bucket is returned."""

import hashlib
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import msgspec

from waybook.events.command import StartPayload
from waybook.events.subjects import RunKey
from waybook.inbox.events import MailReceived, ObjectReference
from waybook.inbox.intake.canonical import content_digest, mail_run_id, thread_token
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.intake.parse import is_damaged, parse_with_files

AGENT = "inbox"
FIELD_LIMIT = 64 * 1024
"""Bytes of one field, as JSON, that stay in a commit (DESIGN 3); a longer text goes whole into the object bucket."""

MAIL_LIMIT = 160 * 1024
"""Bytes of a mail's texts together, as JSON, that stay in a commit."""

EVENT_LIMIT = 224 * 1024
"""Bytes of the whole start event, so that its commit stays under 256 KiB with what the engine adds."""

RAW = "raw"
"""The field in `objects` of a mail that is kept byte by byte: its event does not say all that it holds."""

MOST_ENTRIES = 50
MOST_HEADER = 500
TOO_MUCH = "too much for one event; the mail is kept whole as an object"


class MailStart(msgspec.Struct, frozen=True):
    """A run to start: its key, the start's payload, and the objects to store before the command is published."""

    key: RunKey
    payload: StartPayload
    objects: dict[str, bytes]


def mail_start(
    raw: bytes,
    *,
    tenant: str,
    mailbox: str,
    received_at: int,
    own_addresses: Collection[str] = (),
    live: bool = False,
) -> MailStart:
    """The start of a mail's run. Never raises for what the mail holds. `received_at` in ms, UTC.

    `live`: it came by a channel on which the rate of each sender is kept, and not from a file that a person named.
    """
    mail, files = parse_with_files(raw, tuple(own_addresses))
    run = mail_run_id(raw, mail, tenant=tenant, mailbox=mailbox)
    objects: dict[str, bytes] = {}
    references: dict[str, ObjectReference] = {}
    for digest, data in files.items():
        references[digest] = _keep(objects, f"{AGENT}/{run}/attachment/{digest}", data)
    content = content_digest(raw)
    folder = f"{AGENT}/{run}/{content}"
    if is_damaged(mail):
        references[RAW] = _keep(objects, f"{folder}/raw", raw)
    event = _event(_within_limits(mail, folder, objects, references), received_at, references)
    body = msgspec.json.encode(event)
    if len(body) > EVENT_LIMIT:
        whole = {RAW: _keep(objects, f"{folder}/raw", raw)}
        body = msgspec.json.encode(_event(_bare(event.mail), received_at, whole))
    payload = StartPayload(
        event=MailReceived.__name__,
        schema=MailReceived.SCHEMA,
        body=msgspec.Raw(body),
        content=content,
        thread=thread_token(raw, mail, tenant=tenant, mailbox=mailbox),
        mailbox=mailbox,
        id=mail.message_id,
        sender=mail.author.address or None if mail.author is not None else None,
        live=live,
    )
    return MailStart(RunKey(tenant, AGENT, run), payload, objects)


def _event(mail: ParsedMail, received_at: int, objects: dict[str, ObjectReference]) -> MailReceived:
    return MailReceived(
        sender=mail.from_text,
        subject=mail.subject,
        mail=mail,
        received_at=received_at,
        date=_iso(mail.date),
        objects=objects,
    )


def _bare(mail: ParsedMail) -> ParsedMail:
    """A mail with so many recipients, files, parts or headers that they alone would fill a commit: the first of each."""
    return msgspec.structs.replace(
        mail,
        subject=_cut(mail.subject, FIELD_LIMIT // 8),
        to=mail.to[:MOST_ENTRIES],
        cc=mail.cc[:MOST_ENTRIES],
        reply_to=mail.reply_to[:1],
        references=mail.references[:1] + mail.references[1:][-MOST_ENTRIES:],
        other_text=(),
        text=None if mail.text is None else _cut(mail.text, FIELD_LIMIT // 2),
        html=None if mail.html is None else _cut(mail.html, FIELD_LIMIT // 2),
        attachments=mail.attachments[:MOST_ENTRIES],
        headers={name: tuple(value[:MOST_HEADER] for value in values[:2]) for name, values in mail.headers.items()},
        defects=(TOO_MUCH, *mail.defects[:10]),
    )


def _within_limits(
    mail: ParsedMail, folder: str, objects: dict[str, bytes], references: dict[str, ObjectReference]
) -> ParsedMail:
    """Long texts are cut, and kept whole as objects; what is left of a mail fits into a commit."""
    changes: dict[str, Any] = {}
    left = MAIL_LIMIT
    for field in ("text", "html"):
        text = getattr(mail, field)
        if text is None:
            continue
        cut = _cut(text, min(FIELD_LIMIT, max(left, 4096)))
        if cut != text:
            references[field] = _keep(objects, f"{folder}/{field}", text.encode("utf-8"))
            changes[field] = cut
        left -= _json_size(cut)
    others: list[str] = []
    for number, text in enumerate(mail.other_text):
        cut = _cut(text, max(min(FIELD_LIMIT, left), 0))
        if cut != text:
            references[f"other_text/{number}"] = _keep(objects, f"{folder}/other_text/{number}", text.encode("utf-8"))
        others.append(cut)
        left -= _json_size(cut)
    if changes or tuple(others) != mail.other_text:
        mail = msgspec.structs.replace(mail, **changes, other_text=tuple(others))
    return mail


def _json_size(text: str) -> int:
    """Bytes of a text as JSON: quotes and backslashes take two, control characters six."""
    return len(msgspec.json.encode(text)) - 2


def _cut(text: str, limit: int) -> str:
    """The beginning of a text that takes at most `limit` bytes as JSON."""
    text = text[:limit]
    while (size := _json_size(text)) > limit:
        text = text[: min(len(text) - 1, len(text) * limit // size)]
    return text


def _keep(objects: dict[str, bytes], name: str, data: bytes) -> ObjectReference:
    objects[name] = data
    return ObjectReference(name, hashlib.sha256(data).hexdigest(), len(data))


def _iso(ms: int | None) -> str | None:
    """The mail's own date, where it is one that a calendar has."""
    if ms is None:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None
