"""winmail.dat: the words and files that some senders wrap into one TNEF part.

Decoding is that of `tnefparse` (with `compressed_rtf` and `striprtf` for rich-text bodies), which raises on damaged
parts and trusts every length field; here a damaged part yields what could be read and a defect.
"""

import logging

import msgspec

from waybook.inbox.intake.charsets import clean_text, decode_bytes
from waybook.inbox.intake.headers import one_line

MAX_TNEF = 25 * 1024 * 1024
UNREADABLE = "winmail.dat could not be read in full"
logging.getLogger("tnefparse").setLevel(logging.CRITICAL)  # its warnings are our defects


class Unpacked(msgspec.Struct, frozen=True):
    """What a TNEF part holds; `files` are pairs of name and content."""

    text: str = ""
    html: str = ""
    files: tuple[tuple[str, bytes], ...] = ()
    defects: tuple[str, ...] = ()


def unpack(data: bytes) -> Unpacked:
    """The content of a TNEF part. Never raises."""
    from tnefparse import TNEF  # imported here: few mails need it

    try:
        parsed = TNEF(data[:MAX_TNEF], do_checksum=False)
    except Exception:  # noqa: BLE001 - struct, value, index and key errors on damaged parts
        return Unpacked(defects=(UNREADABLE,))
    defects: list[str] = []
    text, html = _as_text(_get(parsed, "body", defects)), _as_text(_get(parsed, "htmlbody", defects))
    if not text and not html:
        text = _rtf(_get(parsed, "rtfbody", defects), defects)
    files = []
    attachments = _get(parsed, "attachments", defects)
    for item in attachments if isinstance(attachments, list) else ():
        name = _as_text(_get(item, "long_filename", defects)) or _as_text(_get(item, "name", defects)) or "unnamed"
        content = _get(item, "data", defects)
        files.append((one_line(name)[:255], content if isinstance(content, bytes) else b""))
    if not text and not html:
        defects.append("winmail.dat holds no readable body")
    return Unpacked(text, html, tuple(files), tuple(dict.fromkeys(defects)))


def _get(holder: object, name: str, defects: list[str]) -> object:
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - properties that decode on access
        defects.append(UNREADABLE)
        return None


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return decode_bytes(value.rstrip(b"\0"), None)[0].strip()
    return clean_text(value).strip("\ufffd \n") if isinstance(value, str) else ""


def _rtf(value: object, defects: list[str]) -> str:
    if not isinstance(value, bytes | str) or not value:
        return ""
    from striprtf.striprtf import rtf_to_text

    try:
        source = value.decode("latin-1") if isinstance(value, bytes) else value
        text = rtf_to_text(source, errors="ignore")  # type: ignore[no-untyped-call]
        return clean_text(str(text)).strip()
    except Exception:  # noqa: BLE001 - the converter raises many kinds on damaged RTF
        defects.append(UNREADABLE)
        return ""
