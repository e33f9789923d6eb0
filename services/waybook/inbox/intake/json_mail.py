"""Mails given as JSON: one object, an array of objects, or one object a line.

Keys: from, to, cc, reply_to, subject, date, message_id, in_reply_to, references, text, html, headers (an object or a
list of pairs), attachments (objects of name, content_type and content in base64). An object becomes the same bytes
every time, so that its run id is stable.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from email.header import Header
from typing import BinaryIO

from waybook.inbox.intake.charsets import clean_text
from waybook.inbox.intake.headers import one_line

_HEADERS = {
    "from": "From",
    "sender": "From",
    "to": "To",
    "cc": "Cc",
    "replyto": "Reply-To",
    "subject": "Subject",
    "date": "Date",
    "messageid": "Message-ID",
    "inreplyto": "In-Reply-To",
    "references": "References",
}
_BODY = ("text", "body", "html")
_IDS = frozenset({"Message-ID", "In-Reply-To", "References"})
_NAME = re.compile(r"[!-9;-~]{1,100}")
NO_MAIL = "This JSON object is not a mail: it has none of from, subject, text and html."
NO_JSON = "This is not valid JSON: {}."


def is_json(head: bytes, suffix: str) -> bool:
    """Whether a file with this beginning and suffix is read as JSON."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return suffix.lower() in (".json", ".jsonl", ".ndjson") or start[:1] == b"{" or start[:2] in (b"[{", b"[\n", b"[ ")


def read(file: BinaryIO, size: int, limit: int) -> Iterator[tuple[int | None, bytes | str]]:
    """Pairs of number (None for a single object) and the mail's bytes, or the reason why it is none."""
    if size <= limit:
        try:
            value = json.loads(file.read())
        except (ValueError, RecursionError) as error:
            first = error
        else:
            yield from _values(value)
            return
        file.seek(0)
        if not _has_lines(file):
            yield None, NO_JSON.format(_why(first))
            return
    file.seek(0)
    yield from _lines(file, limit)


def _has_lines(file: BinaryIO) -> bool:
    """Whether the first line is an object of its own."""
    try:
        return isinstance(json.loads(file.readline()), dict)
    except (ValueError, RecursionError):
        return False


def _lines(file: BinaryIO, limit: int) -> Iterator[tuple[int | None, bytes | str]]:
    number = 0
    while line := file.readline(limit + 1):
        number += 1
        if len(line) > limit:
            yield number, f"JSON over {limit / 1048576:.0f} MiB is read line by line only, and this line is longer."
            while line and not line.endswith(b"\n"):
                line = file.readline(limit)
        elif line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, NO_JSON.format(_why(error))
            else:
                yield number, mail_bytes(value) or NO_MAIL


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, {error.msg}"
    return "nested too deeply" if isinstance(error, RecursionError) else "not in UTF-8"


def _values(value: object) -> Iterator[tuple[int | None, bytes | str]]:
    if not isinstance(value, list):
        yield None, mail_bytes(value) or NO_MAIL
        return
    if not value:
        yield None, "The JSON array is empty."
    elif not any(mail_bytes(entry) for entry in value):
        yield None, "This JSON array holds no mails: no object in it has any of from, subject, text and html."
        return
    for number, entry in enumerate(value, 1):
        yield number, mail_bytes(entry) or NO_MAIL


def mail_bytes(value: object) -> bytes | None:
    """The mail that a JSON object stands for, as RFC 5322 bytes; None when it is none."""
    if not isinstance(value, Mapping):
        return None
    fields = {re.sub(r"[^a-z]", "", str(k).lower()): v for k, v in value.items()}
    if not any(fields.get(k) for k in ("from", "sender", "subject", *_BODY)):
        return None
    lines: dict[str, list[str]] = {}
    for name, text in _extra(fields.get("headers")):
        lines.setdefault(name, []).append(text)
    for key, name in _HEADERS.items():
        if (text := _header(fields.get(key))) and not any(name.lower() == n.lower() for n in lines):
            lines[name] = [_angled(text) if name in _IDS else text]
    head = [f"{name}: {_word(text)}" for name, texts in lines.items() for text in texts]
    kind, body = _body(fields)
    return "\n".join([*head, "MIME-Version: 1.0", *kind, "", ""]).encode() + body


def _header(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(_header, value)))
    if isinstance(value, Mapping):
        name, address = (value.get(k) for k in ("name", "address" if "address" in value else "email"))
        return f"{name} <{address}>" if name else str(address or "")
    return one_line(str(value)) if isinstance(value, str | int | float) else ""


def _extra(headers: object) -> Iterator[tuple[str, str]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers if isinstance(headers, list) else ()
    for pair in pairs:
        if isinstance(pair, Mapping):
            pair = (pair.get("name"), pair.get("value"))
        if isinstance(pair, list | tuple) and len(pair) == 2 and _NAME.fullmatch(str(pair[0])):
            values = pair[1] if isinstance(pair[1], list) else [pair[1]]
            name = str(pair[0])
            if not name.lower().startswith(("content-", "mime-version")):
                yield from ((name, _header(v)) for v in values)


def _angled(text: str) -> str:
    return text if "<" in text else " ".join(f"<{part.strip(',')}>" for part in text.split())


def _word(text: str) -> str:
    """A header value that reads back as itself: what looks like an encoded word is encoded once more."""
    return Header(text, "utf-8", maxlinelen=10**9).encode() if "=?" in text else text


def _body(fields: Mapping[str, object]) -> tuple[list[str], bytes]:
    """Content headers and body; parts are separated by a boundary made from their digest."""
    text = fields.get("text") if isinstance(fields.get("text"), str) else fields.get("body")
    parts = [
        (f"text/{kind}; charset=utf-8", "8bit", clean_text(value).encode())
        for kind, value in (("plain", text), ("html", fields.get("html")))
        if isinstance(value, str)
    ]
    files = list(_files(fields.get("attachments")))
    if len(parts) == 1 and not files:
        return [f"Content-Type: {parts[0][0]}", f"Content-Transfer-Encoding: {parts[0][1]}"], parts[0][2]
    mark = hashlib.sha256(b"\0".join(p[2] for p in parts + files)).hexdigest()[:32]
    kind = "mixed" if files else "alternative"
    chunks = [
        f"--{mark}\nContent-Type: {head}\nContent-Transfer-Encoding: {coding}\n\n".encode() + data + b"\n"
        for head, coding, data in parts + files
    ]
    return [f'Content-Type: multipart/{kind}; boundary="{mark}"'], b"".join([*chunks, f"--{mark}--\n".encode()])


def _files(value: object) -> Iterator[tuple[str, str, bytes]]:
    for entry in value if isinstance(value, list) else ():
        if not isinstance(entry, Mapping):
            continue
        name = re.sub(r'["\\]', "_", one_line(str(entry.get("name") or entry.get("filename") or "unnamed")))
        kind = one_line(str(entry.get("content_type") or "application/octet-stream")).partition(";")[0]
        content = entry.get("content")
        try:
            data = base64.b64decode(content, validate=True) if isinstance(content, str) else b""
        except (binascii.Error, ValueError):
            data = clean_text(str(content)).encode()
        head = f'{kind}\nContent-Disposition: attachment; filename="{name}"'
        yield head, "base64", base64.encodebytes(data)
