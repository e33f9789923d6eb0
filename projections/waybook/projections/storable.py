"""Text and JSON as PostgreSQL takes them: it refuses NUL everywhere, and lone surrogates and huge numbers in jsonb."""

import json
import re
from typing import Any

import msgspec

REPLACEMENT = "\ufffd"
_DIRTY = re.compile(r"[\x00\ud800-\udfff]")
_HUGE = re.compile(rb"[0-9](?:[eE][+-]?[0-9]{4}|[0-9]{999})")
_encode = msgspec.json.Encoder(decimal_format="number").encode


def text(value: str) -> str:
    """`value` with U+FFFD for every NUL and lone surrogate."""
    if value.isascii() and "\x00" not in value:
        return value
    return _DIRTY.sub(REPLACEMENT, value)


def json_text(value: Any) -> str:
    """`value` as JSON that jsonb takes."""
    try:
        encoded = _encode(value)
    except UnicodeEncodeError:
        encoded = _encode(_clean(value))
    return raw_json(encoded)


def raw_json(encoded: bytes | memoryview) -> str:
    """JSON bytes as JSON text that jsonb takes."""
    data = bytes(encoded)
    if b"\\u" not in data and _HUGE.search(data) is None:
        return data.decode("utf-8", "replace")
    return _encode(_clean(json.loads(data, parse_int=_integer, parse_float=_number))).decode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(k) if isinstance(k, str) else k: _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < 1000 else digits


def _number(digits: str) -> float | str:
    number = float(digits)
    return digits if number in (float("inf"), float("-inf")) else number
