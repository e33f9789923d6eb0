"""Durations and sizes as people write them."""

import re
from typing import Annotated

from msgspec import Meta

UNLIMITED = -1
_DURATION_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

# The unit tells the reader of the file which of the parsers below a field needs.
Milliseconds = Annotated[int, Meta(extra={"unit": "duration"})]
Bytes = Annotated[int, Meta(extra={"unit": "size"})]
Count = Annotated[int, Meta(extra={"unit": "count"})]


def parse_duration(value: object) -> int:
    """Milliseconds of `250ms`, `60s`, `2m`, `12h`, `7d`. Raises ValueError."""
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a duration; write it like 250ms, 60s, 2m, 12h or 7d")
    return int(found[1]) * _DURATION_MS[found[2]]


def parse_size(value: object) -> int:
    """Bytes of `512`, `64KiB`, `1MiB`, `2GiB`; `unlimited` is -1. Raises ValueError."""
    if value == "unlimited":
        return UNLIMITED
    found = re.fullmatch(r"(\d+)(|KiB|MiB|GiB|TiB)", str(value)) if type(value) in (int, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a size; write it like 512, 64KiB, 1MiB, 2GiB or unlimited")
    return int(found[1]) * _SIZE_BYTES[found[2]]


def parse_count(value: object) -> int:
    """A whole number above 0; `unlimited` is -1. Raises ValueError."""
    if value == "unlimited":
        return UNLIMITED
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is not a number above 0 or `unlimited`")
    return value


def show_duration(nanoseconds: int) -> str:
    """`2m` for 120,000,000,000; `0` is none."""
    if nanoseconds == 0:
        return "none"
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    if rest:
        return f"{nanoseconds}ns"
    unit = max((u for u, size in _DURATION_MS.items() if milliseconds % size == 0), key=_DURATION_MS.__getitem__)
    return f"{milliseconds // _DURATION_MS[unit]}{unit}"


def show_size(size: int) -> str:
    """`64KiB` for 65,536; `unlimited` for -1."""
    if size < 0:
        return "unlimited"
    unit = max((u for u, s in _SIZE_BYTES.items() if size % s == 0), key=_SIZE_BYTES.__getitem__) if size else ""
    return f"{size // _SIZE_BYTES[unit]}{unit}"
