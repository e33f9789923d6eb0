"""The digest of canonical parameters: what an approval is sealed with, and what an operation is stored with."""

import hashlib
from typing import Any

import msgspec


def canonical(params: Any) -> bytes:
    """The parameters as JSON with sorted keys and no blanks: the same bytes for the same values."""
    return msgspec.json.encode(params, order="sorted")


def canonical_digest(params: Any) -> str:
    """SHA-256 of the canonical parameters, in hexadecimal. Bytes that are sent as they are may be given as bytes."""
    data = params if isinstance(params, bytes) else canonical(params)
    return hashlib.sha256(data).hexdigest()
