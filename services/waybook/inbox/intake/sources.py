"""Where mails come from: files, mailboxes and folders, read one mail at a time.

Every file that is looked at yields at least one Item or Skipped, so that nothing goes missing without a word.
Memory holds one mail at most, whatever the size of a mailbox or folder.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from waybook.inbox.intake import json_mail, mbox
from waybook.inbox.intake.mail import MAX_MAIL_BYTES

HEAD = 4096
_LINE_END = re.compile(rb"\r\n?|\n")
_HEADER_LINE = re.compile(rb"[!-9;-~]+[ \t]*:")
_KNOWN_HEADER = re.compile(
    rb"(?im)^(?:From|To|Cc|Subject|Date|Message-ID|Received|Return-Path|MIME-Version|Content-Type|Reply-To|"
    rb"Delivered-To|Sender|X-[A-Za-z0-9-]+|DKIM-Signature)[ \t]*:"
)
_PACKED = (
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"\xfd7zXZ", "xz"),
    (b"BZh", "bzip2"),
    (b"(\xb5/\xfd", "zstd"),
)


class Item(msgspec.Struct, frozen=True):
    """A mail: where it was found (`mailbox#3` is the third mail of a mailbox) and its bytes."""

    path: str
    raw: bytes


class Skipped(msgspec.Struct, frozen=True):
    """Something that is not taken in, and why, as a sentence for people."""

    path: str
    reason: str


def read_sources(paths: Iterable[str | Path], limit: int = MAX_MAIL_BYTES) -> Iterator[Item | Skipped]:
    """The mails under `paths`: .eml files, mboxes, Maildirs, folders (recursive), JSON. Lazily, in a fixed order.

    `limit` is the largest mail taken, in bytes. Never raises for what it finds.
    """
    for path in paths:
        yield from _read_path(Path(path), limit, frozenset())


def _read_path(path: Path, limit: int, above: frozenset[tuple[int, int]]) -> Iterator[Item | Skipped]:
    try:
        found = path.stat()
    except OSError as error:
        yield Skipped(str(path), _os_reason(error, path))
        return
    if stat.S_ISDIR(found.st_mode):
        key = (found.st_dev, found.st_ino)
        if key in above:
            yield Skipped(str(path), "The folder contains itself through a link.")
        else:
            yield from _read_folder(path, limit, above | {key})
    elif stat.S_ISREG(found.st_mode):
        yield from _read_file(path, found.st_size, limit)
    else:
        yield Skipped(str(path), "This is neither a file nor a folder.")


def _read_folder(path: Path, limit: int, above: frozenset[tuple[int, int]]) -> Iterator[Item | Skipped]:
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        yield Skipped(str(path), _os_reason(error, path))
        return
    is_maildir = {"cur", "new"} <= set(names)
    for name in names:
        inner = path / name
        if is_maildir and name == "tmp":
            for file in sorted(inner.iterdir()) if inner.is_dir() else ():
                yield Skipped(str(file), "The mail is still being delivered (it lies in the Maildir's tmp).")
        elif name.startswith(".") and not (is_maildir and (inner / "cur").is_dir()):
            yield Skipped(str(inner), "Hidden files and folders are left out; name it to take it in.")
        else:
            yield from _read_path(inner, limit, above)


def _read_file(path: Path, size: int, limit: int) -> Iterator[Item | Skipped]:
    label = str(path)
    if size == 0:
        yield Skipped(label, "The file is empty.")
        return
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            file.seek(0)
            if mbox.is_mbox(head) and _holds_one_mail(path):
                postmark = _first_line(head)
                file.seek(postmark)
                head, size = head[postmark:], size - postmark
                yield _whole(label, head, size, limit, file.read(limit + 1) if size <= limit else b"")
            elif mbox.is_mbox(head):
                yield from (_from_mbox(label, n, part, limit) for n, part in enumerate(mbox.split(file, limit), 1))
            elif json_mail.is_json(head, path.suffix):
                yield from _from_json(label, json_mail.read(file, size, limit))
            else:
                yield _whole(label, head, size, limit, file.read(limit + 1) if size <= limit else b"")
    except OSError as error:
        yield Skipped(label, _os_reason(error, path))


def _holds_one_mail(path: Path) -> bool:
    """Whether the file is one mail by its name or place, so that a line like a postmark inside belongs to its text.

    A returned mail inside a bounce begins with one; read as a mail of its own it would be answered.
    """
    return path.suffix.lower() == ".eml" or path.parent.name in ("cur", "new")


def _first_line(head: bytes) -> int:
    """Its length with its end, which old Macs write as a lone CR."""
    end = _LINE_END.search(head)
    return end.end() if end is not None else len(head)


def _whole(label: str, head: bytes, size: int, limit: int, raw: bytes) -> Item | Skipped:
    if reason := not_a_mail(head):
        return Skipped(label, reason)
    if size > limit or len(raw) > limit:
        return Skipped(label, too_large(size, limit))
    return Item(label, raw)


def _from_mbox(label: str, number: int, part: bytes | int, limit: int) -> Item | Skipped:
    name = f"{label}#{number}"
    if isinstance(part, int):
        return Skipped(name, too_large(part, limit))
    if reason := not_a_mail(part[:HEAD]):
        return Skipped(name, reason)
    return Item(name, part)


def _from_json(label: str, found: Iterator[tuple[int | None, bytes | str]]) -> Iterator[Item | Skipped]:
    for number, value in found:
        name = label if number is None else f"{label}#{number}"
        yield Skipped(name, value) if isinstance(value, str) else Item(name, value)


def not_a_mail(head: bytes) -> str | None:
    """Why bytes that begin with `head` are not a mail; None when they may be one."""
    for magic, name in _PACKED:
        if head.startswith(magic):
            return f"The file is packed ({name}); unpack it first."
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    if not text.strip():
        return "The file holds nothing but blanks."
    if _KNOWN_HEADER.search(text):
        return None
    if _HEADER_LINE.match(text) and b"\0" not in head and not text.startswith((b"http:", b"https:")):
        lines = text.splitlines()
        second = lines[1] if len(lines) > 1 else b""
        if not second.strip() or second[:1] in b" \t" or _HEADER_LINE.match(second):
            return None
    return "This is not a mail: no header line such as From or Subject was found."


def too_large(size: int, limit: int) -> str:
    """The sentence for a mail over the limit; both in bytes."""
    return f"The mail is too large: {size / 1048576:.1f} MiB, {limit / 1048576:.0f} MiB at most."


def _os_reason(error: OSError, path: Path) -> str:
    if isinstance(error, FileNotFoundError):
        dangling = path.is_symlink()
        return "The link points to nothing." if dangling else "There is no such file or folder."
    if isinstance(error, PermissionError):
        return "The file may not be read (permission denied)."
    return f"The file could not be read: {error.strerror or type(error).__name__}."
