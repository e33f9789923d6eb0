"""The MIME tree of a mail, walked once: readable text, files, and text that a reader does not see.

The standard parser keeps what it cannot place (preamble, text after the last boundary, a multipart without a
boundary); nothing of that is dropped here, because a mail client may still show it.
"""

import hashlib
import re
from typing import cast

from waybook.inbox.intake import calendar, enriched, tnef
from waybook.inbox.intake.charsets import decode_bytes, undo_escapes
from waybook.inbox.intake.headers import decode_header, message_ids
from waybook.inbox.intake.mail import Attachment, Invitation
from waybook.inbox.intake.raw_policy import Part, parse_bytes

MAX_PARTS = 500
MAX_DEPTH = 30
MAX_TEXT = 1024 * 1024
"""Characters of readable text kept of one part; the raw mail holds the rest."""
_BOUNDARY_LINE = re.compile(r"^--([^\s-][^\r\n]{0,69}?)(?:--)?[ \t]*$", re.MULTILINE)
_TYPE = re.compile(r"[!#-'*+.0-9a-z^-~-]{1,127}/[!#-'*+.0-9a-z^-~-]{1,127}")
_NO_VALUE = re.compile(r";\s*[\w-]+\*?(?:\d+\*?)?\s*(?:;|$)")
_REPORT_TYPES = frozenset(
    {"text/rfc822-headers", "message/delivery-status", "message/disposition-notification", "message/feedback-report"}
)
_RICH = frozenset({"text/enriched", "text/richtext"})


class Parts:
    """Collects what the parts of one mail hold. `files` maps the digest of an attachment to its bytes."""

    def __init__(self, defects: list[str]) -> None:
        self.defects = defects
        self.plain: list[str] = []
        self.html: list[str] = []
        self.tnef_text: list[str] = []
        self.other: list[str] = []
        self.attachments: list[Attachment] = []
        self.files: dict[str, bytes] = {}
        self.invitation: Invitation | None = None
        self.delivery: list[dict[str, str]] = []
        self.original_id: str | None = None
        self._seen = 0

    def add(self, part: Part, depth: int = 0, nested: bool = False) -> None:
        """Takes `part` and everything below it; `nested`: it belongs to a mail inside the mail."""
        self._seen += 1
        if self._seen > MAX_PARTS or depth > MAX_DEPTH:
            if "too many or too deeply nested parts" not in self.defects:
                self.defects.append("too many or too deeply nested parts")
            return
        self.defects.extend(sorted({_defect_name(d) for d in part.defects} - set(self.defects)))
        if _NO_VALUE.search(str(part.get("Content-Type", ""))[:4000]):
            self.defects.append("a parameter of Content-Type has no value")
        kind = _content_type(part)
        if part.is_multipart() and kind != "message/rfc822":
            self._add_children(part, depth, nested, report=kind in _REPORT_TYPES)
        elif kind == "message/rfc822":
            self._add_nested(part, depth)
        elif kind.startswith("multipart/"):
            self._add_unbounded(part, depth, nested)
        else:
            self._add_leaf(part, kind, nested)

    def _add_children(self, part: Part, depth: int, nested: bool, report: bool) -> None:
        for text in (part.preamble, part.epilogue):
            if text and text.strip() and not _mime_notice(text):
                self.other.append(self._text(undo_escapes(text), None))
        for child in cast("list[Part]", part.get_payload()):
            if report:
                fields = {k: decode_header(str(v), []) for k, v in child.items()}
                self.other.append("\n".join(f"{k}: {v}" for k, v in fields.items()))
                if not nested:  # a bounce that a person forwards is no bounce
                    self.delivery.append({k.lower(): v for k, v in fields.items()})
            else:
                self.add(child, depth + 1, nested)

    def _add_nested(self, part: Part, depth: int) -> None:
        payload = part.get_payload()
        children = cast("list[Part]", payload) if isinstance(payload, list) else []
        if not children:
            return self._add_leaf(part, "text/plain", nested=True)
        inner = children[0]
        self._note_original(inner)
        subject = decode_header(str(inner.get("Subject", "")), self.defects, "subject of a nested mail")
        self._file(part, f"{subject or 'nested mail'}.eml", "message/rfc822", _bytes_of(inner))
        if subject:
            self.other.append(subject)
        self.add(inner, depth + 1, nested=True)
        return None

    def _note_original(self, inner: Part) -> None:
        """The Message-ID of the first mail inside the mail: of a report, the mail that it is about."""
        if self.original_id is None:
            self.original_id = next(iter(message_ids(str(inner.get("Message-ID", "")))), None)

    def _add_unbounded(self, part: Part, depth: int, nested: bool) -> None:
        """A multipart whose boundary is missing or never used: the first line that looks like one is taken."""
        payload = part.get_payload()
        text = payload if isinstance(payload, str) else ""
        found = _BOUNDARY_LINE.search(text)
        if found is None:
            return self._add_leaf(part, "text/plain", nested)
        self.defects.append("multipart without a usable boundary, one was guessed")
        head = b'Content-Type: multipart/mixed; boundary="' + undo_escapes(found[1]) + b'"\n\n'
        guessed = parse_bytes(head + undo_escapes(text))
        if guessed.is_multipart():
            return self.add(guessed, depth + 1, nested)
        self._readable("text/plain", self._text(undo_escapes(text), None), nested)
        return None

    def _add_leaf(self, part: Part, kind: str, nested: bool) -> None:
        data = _payload(part, self.defects)
        name = self._name(part)
        charset = _charset(part)
        disposition = str(part.get("Content-Disposition", "")).split(";")[0].strip().lower()
        if kind == "text/calendar" or (kind == "application/ics" and self.invitation is None):
            self._add_calendar(data, charset)
        if kind in _REPORT_TYPES:
            self.other.append(self._text(data, charset))
            if kind == "text/rfc822-headers":
                self._note_original(parse_bytes(data[:65_536]))
        elif kind in ("application/ms-tnef", "application/vnd.ms-tnef") or name.lower() == "winmail.dat":
            self._add_tnef(part, name, data)
        elif kind.startswith("text/") and kind != "text/calendar" and not name and disposition != "attachment":
            self._readable(kind, self._text(data, charset), nested)
        elif kind in ("text/plain", "text/html") and disposition != "attachment":  # named, and still shown by readers
            self._file(part, name, kind, data)
            self._readable(kind, self._text(data, charset), nested)
        elif data or name:
            self._file(part, name or f"part-{self._seen}", kind, data)
            if kind in ("text/plain", "text/html"):
                self.other.append(self._text(data, charset))
            elif kind in ("text/calendar", "application/ics"):
                self.other.append(calendar.unfolded(self._text(data, charset or "utf-8")))

    def _readable(self, kind: str, text: str, nested: bool) -> None:
        if nested:
            self.other.append(text)
        elif kind == "text/html":
            self.html.append(text)
        else:
            self.plain.append(enriched.to_plain(text) if kind in _RICH else text)

    def _add_calendar(self, data: bytes, charset: str | None) -> None:
        item = calendar.read_invitation(self._text(data, charset or "utf-8"))
        if item is None:
            self.defects.append("calendar part could not be read")
        elif self.invitation is None:
            self.invitation = item

    def _add_tnef(self, part: Part, name: str, data: bytes) -> None:
        found = tnef.unpack(data)
        self.defects.extend(found.defects)
        if found.text:
            self.tnef_text.append(found.text)
        if found.html:
            self.html.append(found.html)
        for inner, content in found.files:
            self._file(None, inner, "application/octet-stream", content)
        if found.defects or not (found.text or found.html or found.files):
            self._file(part, name or "winmail.dat", "application/ms-tnef", data)

    def _text(self, data: bytes, charset: str | None) -> str:
        if len(data) > 4 * MAX_TEXT:
            data = data[: 4 * MAX_TEXT]
        text, remark = decode_bytes(data, charset)
        if remark and remark not in self.defects:
            self.defects.append(remark)
        if "\ufffd" in text and "text holds characters that cannot be read" not in self.defects:
            self.defects.append("text holds characters that cannot be read")
        if len(text) > MAX_TEXT:
            self.defects.append(f"text of {len(text)} characters or more, cut at {MAX_TEXT}")
            text = text[:MAX_TEXT]
        return text

    def _name(self, part: Part) -> str:
        try:
            name = part.get_filename() or ""
        except Exception:  # noqa: BLE001 - parameters that the standard parser falls over
            self.defects.append("a file name could not be read")
            return "unreadable name"
        return decode_header(name, self.defects, "file name").replace("\\", "/").rpartition("/")[2][:255]

    def _file(self, part: Part | None, name: str, kind: str, data: bytes) -> None:
        digest = hashlib.sha256(data).hexdigest()
        inline = part is not None and str(part.get("Content-Disposition", "")).strip().lower().startswith("inline")
        self.attachments.append(Attachment(name, kind, len(data), digest, inline or _has_cid(part)))
        self.files[digest] = data


def _has_cid(part: Part | None) -> bool:
    return part is not None and part.get("Content-ID") is not None


def _content_type(part: Part) -> str:
    """The type of a part; one that is not of the standard's form counts as plain text, as RFC 2045 (5.2) says."""
    try:
        found = part.get_content_type().strip().lower()
    except Exception:  # noqa: BLE001 - see above
        return "application/octet-stream"
    return found if _TYPE.fullmatch(found) else "text/plain"


def _charset(part: Part) -> str | None:
    try:
        found = part.get_param("charset")
    except Exception:  # noqa: BLE001 - see above
        return None
    if isinstance(found, tuple):
        found = found[2]
    return found.strip() or None if isinstance(found, str) else None


def _payload(part: Part, defects: list[str]) -> bytes:
    """The decoded bytes of a leaf part; undecodable transfer encodings leave the bytes as they came."""
    payload = part.get_payload()
    if not isinstance(payload, str):
        return b""
    try:
        decoded = part.get_payload(decode=True)
    except Exception:  # noqa: BLE001 - binascii and uu raise errors of their own
        defects.append("transfer encoding could not be undone")
        return undo_escapes(payload)
    return decoded if isinstance(decoded, bytes) else undo_escapes(payload)


def _bytes_of(message: Part) -> bytes:
    try:
        return message.as_bytes()
    except Exception:  # noqa: BLE001 - the generator refuses some of what the parser accepts
        return undo_escapes(str(message.get_payload()))


def _defect_name(defect: object) -> str:
    words = re.sub(r"Defect$", "", type(defect).__name__)
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])", " ", words).lower()


def _mime_notice(text: str) -> bool:
    """The note for readers without MIME that old mail programs put before the first boundary."""
    return len(text) < 300 and bool(re.search(r"(?i)multi-?part|MIME", text))
