"""mbox files, split while they are read (RFC 4155, with the quoting of mboxrd undone)."""

import re
from collections.abc import Iterator
from typing import BinaryIO

# A postmark names a sender and a time; a line of text that happens to begin with "From " names neither.
_POSTMARK = re.compile(rb"From [^\r\n]*?\d{1,2}:\d\d(?::\d\d)?[^\r\n]*|From \S+[ \t]+(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b")
_QUOTED = re.compile(rb">+From ")
_MAX_LINE = 1024 * 1024
_EMPTY = (b"\n", b"\r\n", b"\r")
_HEAD = 4096


def is_mbox(head: bytes) -> bool:
    """Whether a file that begins with `head` is an mbox."""
    return _POSTMARK.match(head.lstrip(b"\r\n")) is not None


def split(file: BinaryIO, limit: int) -> Iterator[bytes | int]:
    """The mails of an mbox in order; the size in bytes in place of a mail that is over `limit`."""
    lines: list[bytes] = []
    size = 0
    begun = False
    blank = True  # a postmark counts at the start and after an empty line only
    for line in _lines(file):
        if blank and line.startswith(b"From ") and _POSTMARK.match(line):
            if begun:
                yield _mail(lines, size, limit)
            lines, size, begun, blank = [], 0, True, False
            continue
        blank = line in _EMPTY
        size += len(line)
        if size <= limit:
            lines.append(line[1:] if line.startswith(b">") and _QUOTED.match(line) else line)
        else:
            lines.clear()
    if begun:
        yield _mail(lines, size, limit)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines with their ends; where the beginning knows no line feed they end with a carriage return."""
    head = file.read(_HEAD)
    file.seek(0)
    if b"\n" in head or b"\r" not in head:
        yield from iter(lambda: file.readline(_MAX_LINE), b"")
        return
    rest = b""
    while chunk := file.read(_MAX_LINE):
        *whole, rest = (rest + chunk).split(b"\r")
        yield from (line + b"\r" for line in whole)
        if len(rest) >= _MAX_LINE:
            yield rest
            rest = b""
    if rest:
        yield rest


def _mail(lines: list[bytes], size: int, limit: int) -> bytes | int:
    """One mail without the empty line that the mailbox puts behind it."""
    if size > limit:
        return size
    if lines and lines[-1] in _EMPTY:
        lines.pop()
    return b"".join(lines)
