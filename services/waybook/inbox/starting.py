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
from waybook.inbox.intake.parse import parse_with_files

AGENT = "inbox"
FIELD_LIMIT = 64 * 1024
"""Bytes of one field that stay in a commit (DESIGN 3); a longer text goes whole into the object bucket."""

MAIL_LIMIT = 160 * 1024
"""Bytes of a mail's parts together that stay in a commit, so that it fits with what the engine adds."""


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
) -> MailStart:
    """The start of a mail's run. Never raises for what the mail holds. `received_at` in ms, UTC."""
    mail, files = parse_with_files(raw, tuple(own_addresses))
    run = mail_run_id(raw, mail, tenant=tenant, mailbox=mailbox)
    objects: dict[str, bytes] = {}
    references: dict[str, ObjectReference] = {}
    for digest, data in files.items():
        references[digest] = _keep(objects, f"{AGENT}/{run}/attachment/{digest}", data)
    content = content_digest(raw)
    mail = _within_limits(mail, f"{AGENT}/{run}/{content}", objects, references)
    event = MailReceived(
        sender=mail.from_text,
        subject=mail.subject,
        mail=mail,
        received_at=received_at,
        date=_iso(mail.date),
        objects=references,
    )
    payload = StartPayload(
        event=MailReceived.__name__,
        schema=MailReceived.SCHEMA,
        body=msgspec.Raw(msgspec.json.encode(event)),
        content=content,
        thread=thread_token(raw, mail, tenant=tenant, mailbox=mailbox),
        mailbox=mailbox,
        id=mail.message_id,
    )
    return MailStart(RunKey(tenant, AGENT, run), payload, objects)


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
        data = text.encode("utf-8")
        room = min(FIELD_LIMIT, max(left, 4096))
        if len(data) > room:
            references[field] = _keep(objects, f"{folder}/{field}", data)
            changes[field] = _cut(data, room)
        left -= min(len(data), room)
    others: list[str] = []
    for number, text in enumerate(mail.other_text):
        data = text.encode("utf-8")
        room = max(min(FIELD_LIMIT, left), 0)
        if len(data) > room:
            references[f"other_text/{number}"] = _keep(objects, f"{folder}/other_text/{number}", data)
        others.append(_cut(data, room))
        left -= min(len(data), room)
    if changes or tuple(others) != mail.other_text:
        mail = msgspec.structs.replace(mail, **changes, other_text=tuple(others))
    return mail


def _cut(data: bytes, limit: int) -> str:
    return data[:limit].decode("utf-8", "ignore")


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
