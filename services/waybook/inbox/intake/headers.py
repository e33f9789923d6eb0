"""Header values: decoded, one line each, never an exception."""

import base64
import binascii
import hashlib
import quopri
import re
from datetime import UTC
from email.utils import getaddresses, parsedate_to_datetime

from waybook.inbox.intake.charsets import clean_text, decode_bytes, undo_escapes
from waybook.inbox.intake.mail import Address

MAX_HEADER = 16_384
_MAX_ID = 900
OVERSIZED = "oversized-"
"""What begins the name that stands for an id which is too long."""

_WORD = re.compile(r"=\?([^?*\s]{1,60})(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?=")
_BETWEEN = re.compile(r"(\?=)\s+(=\?)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+")
_ANGLE = re.compile(r"<([^<>]*)>")
_ADDRESS = re.compile(r"[^\s<>,;:\"()\[\]]+@[^\s<>,;:\"()]+")

_NO_ADDRESS = re.compile(r"[<>\"]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_EMPTY_GROUP = re.compile(r"\s*[\w .-]+:\s*;\s*$")
_TO_MANY = frozenset({"To", "Cc"})
"""Headers in which an empty group is usual: the recipients are not disclosed."""
_USUAL_ID = re.compile(r"[^\s@<>()\[\]]+@(?:[^\s@<>()\[\]]+|\[[^\s\[\]]+\])")


def one_line(text: str) -> str:
    """`text` on one line: folds and control characters become one blank (a header must not carry another)."""
    return " ".join(_CONTROL.sub(" ", clean_text(text)).split())


def decode_header(value: str, defects: list[str], name: str = "header") -> str:
    """The readable text of a raw header value, RFC 2047 words decoded, on one line."""
    if len(value) > MAX_HEADER:
        defects.append(f"{name} is {len(value)} characters long, cut at {MAX_HEADER}")
        value = value[:MAX_HEADER]
    text = _raw_text(value, defects, name)
    if "=?" in text:
        text = _decode_words(_BETWEEN.sub(r"\1\2", text), defects, name)
    if "\0" in text or "\ufffd" in text:
        defects.append(f"{name} holds characters that cannot be stored")
    return one_line(text)


def _raw_text(value: str, defects: list[str], name: str) -> str:
    if value.isascii():
        return value
    text, remark = decode_bytes(undo_escapes(value), None)
    if remark:
        defects.append(f"{name}: {remark}")
    return text


def _decode_words(text: str, defects: list[str], name: str) -> str:
    out: list[str] = []
    pending: tuple[str, bytes] | None = None  # words of one charset are joined first: senders cut inside a character
    at = 0
    for match in _WORD.finditer(text):
        between = text[at : match.start()]
        charset, data = match[1].lower(), _word_bytes(match[2], match[3])
        if pending and (between or pending[0] != charset):
            out.append(_flush(pending, defects, name))
            pending = None
        out.append(between)
        pending = (charset, (pending[1] if pending else b"") + data)
        at = match.end()
    if pending:
        out.append(_flush(pending, defects, name))
    return "".join(out) + text[at:]


def _flush(word: tuple[str, bytes], defects: list[str], name: str) -> str:
    text, remark = decode_bytes(word[1], word[0])
    if remark:
        defects.append(f"{name}: {remark}")
    return text


def _word_bytes(encoding: str, data: str) -> bytes:
    raw = data.encode("utf-8", "surrogatepass")
    if encoding in "qQ":
        return quopri.decodestring(raw.replace(b"_", b" "), header=True)
    try:
        return base64.b64decode(raw + b"=" * (-len(raw) % 4))
    except (binascii.Error, ValueError):
        return raw


def decode_addresses(values: list[str], defects: list[str], name: str) -> tuple[Address, ...]:
    """The mailboxes of the header `name`; groups and comments leave nothing behind."""
    found: list[Address] = []
    for value in values:
        raw = _raw_text(value[:MAX_HEADER], defects, name).replace("\n", " ").replace("\r", " ")
        listed = [
            Address(decode_header(display, defects, name), _normal(address))
            for display, address in _pairs(raw, defects, name)
            if "@" in address and not _NO_ADDRESS.search(address)
        ]
        if listed and not _is_list(raw, len(listed)):
            _say_odd(raw, defects, name)
        elif not listed and raw.strip() and not (name in _TO_MANY and _EMPTY_GROUP.match(raw)):
            listed = _rescue(raw, defects, name)
        found.extend(listed)
    return tuple(found)


def _pairs(raw: str, defects: list[str], name: str) -> list[tuple[str, str]]:
    try:
        return getaddresses([raw])
    except Exception:  # noqa: BLE001 - the standard parser raises what it likes on odd headers
        defects.append(f"{name} could not be taken apart")
        return []


def _rescue(raw: str, defects: list[str], name: str) -> list[Address]:
    """Addresses picked out of a value that is no address list."""
    text = decode_header(raw, defects, name)
    addresses = _ANGLE.findall(text) or _ADDRESS.findall(text)
    _say_odd(raw, defects, name)
    return [Address("", _normal(a)) for a in addresses if "@" in a]


def _is_list(raw: str, addresses: int) -> bool:
    """Whether the brackets and commas of a value account for the addresses that were found in it."""
    bare = _QUOTED.sub("", raw)
    return bare.count("<") <= addresses <= 1 + bare.count(",") + bare.count(";")


def _say_odd(raw: str, defects: list[str], name: str) -> None:
    defects.append(f"{name} is not a valid address list: {decode_header(raw, [])[:80]!r}")


def _normal(address: str) -> str:
    local, _, domain = "".join(address.split()).rpartition("@")
    return one_line(f"{local}@{domain.strip('<>').rstrip('.').lower()}")


def message_ids(value: str) -> list[str]:
    """The ids in a Message-ID, In-Reply-To or References value, without blanks and angle brackets, case kept."""
    text = one_line(_raw_text(value[: 16 * MAX_HEADER], [], ""))
    inside = [bare for bare in ("".join(part.split()) for part in _ANGLE.findall(text)) if bare]
    if inside:
        return [_short(part) for part in inside]
    bare = text.replace("<", " ").replace(">", " ")
    return [_short(part) for part in bare.split() if "@" in part] or (
        [_short("".join(bare.split()))] if bare.strip() else []
    )


def is_usual_id(message_id: str) -> bool:
    """Whether an id has the form that the standards ask for; others serve as well."""
    return _USUAL_ID.fullmatch(message_id) is not None


def _short(message_id: str) -> str:
    """An id of bounded length: a longer one is replaced by a name made from its digest."""
    if len(message_id) <= _MAX_ID:
        return message_id
    return OVERSIZED + hashlib.sha256(message_id.encode()).hexdigest()


DAY_MS = 86_400_000


def decode_date(value: str, defects: list[str]) -> int | None:
    """Milliseconds since the epoch, UTC, of a Date value; None with a remark when nobody can read it.

    A date without a zone counts as UTC.
    """
    text = one_line(value[:MAX_HEADER])
    try:
        moment = parsedate_to_datetime(text[:100])
        if moment.tzinfo is None:
            defects.append("Date names no zone, taken as UTC")
            moment = moment.replace(tzinfo=UTC)
        stamp = int(moment.timestamp() * 1000)
    except Exception:  # noqa: BLE001 - TypeError, ValueError, IndexError and OverflowError have all been seen
        defects.append(f"Date cannot be read: {text[:60]!r}")
        return None
    if stamp < 0:
        defects.append(f"Date lies before 1970: {text[:60]!r}")
        return None
    return stamp
