"""Text and JSON as PostgreSQL takes them: it refuses NUL everywhere, and lone surrogates and huge numbers in jsonb.

Text is cleaned at once. JSON is long and almost always clean, so it is cleaned only after PostgreSQL has refused it;
`clean_json` leaves what is not refused as it is, so that a value's row does not depend on its neighbours.
"""

import json
import re
from typing import Any

import msgspec

REPLACEMENT = "\ufffd"
DIGITS_BEFORE_POINT = 131_072
DIGITS_AFTER_POINT = 16_383
"""The most that a number of PostgreSQL has."""

_DIRTY = re.compile(r"[\x00\ud800-\udfff]")
_NUMBER = re.compile(r"-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?)0*(\d+))?")
_encode = msgspec.json.Encoder(decimal_format="number").encode


def text(value: str) -> str:
    """`value` with U+FFFD for every NUL and lone surrogate."""
    if value.isascii() and "\x00" not in value:
        return value
    return _DIRTY.sub(REPLACEMENT, value)


def json_text(value: Any) -> str:
    """`value` as JSON, which PostgreSQL may refuse."""
    try:
        return _encode(value).decode("utf-8", "replace")
    except UnicodeEncodeError:
        return _encode(_clean(value)).decode("utf-8", "replace")


def clean_json(value: str) -> str:
    """JSON that jsonb takes: U+FFFD for what `text` replaces, texts for numbers that are too long."""
    return _encode(_clean(json.loads(value, parse_int=_number, parse_float=_number))).decode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(k) if isinstance(k, str) else k: _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value


def _number(digits: str) -> msgspec.Raw | str:
    """The number as it stands, or the text of one that PostgreSQL refuses."""
    found = _NUMBER.fullmatch(digits)
    assert found is not None
    before, after, sign, exponent = found[1], found[2] or "", found[3], found[4] or "0"
    if len(exponent) > 9:
        return digits
    shift = -int(exponent) if sign == "-" else int(exponent)
    significant = (before + after).lstrip("0")
    size = len(significant) - len(after) + shift if significant else 0
    fits = size <= DIGITS_BEFORE_POINT and len(after) - shift <= DIGITS_AFTER_POINT
    return msgspec.Raw(digits.encode()) if fits else digits
