"""What an approval is sealed with, and an operation stored with: the digest of canonical parameters; and its outer name."""

import hashlib
from base64 import b32encode
from typing import Any

import msgspec

from waybook.events.subjects import RunKey


def canonical(params: Any) -> bytes:
    """The parameters as JSON with sorted keys and no blanks: the same bytes for the same values."""
    return msgspec.json.encode(params, order="sorted")


def canonical_digest(params: Any) -> str:
    """SHA-256 of the canonical parameters, in hexadecimal. Bytes that are sent as they are may be given as bytes."""
    data = params if isinstance(params, bytes) else canonical(params)
    return hashlib.sha256(data).hexdigest()


def idempotency_key(key: RunKey, operation: str) -> str:
    """What other sides know an operation by: the same for all attempts at it, and for no other. 32 characters."""
    name = (key.tenant, key.agent, key.run, operation)
    digest = hashlib.sha256("\0".join(name).encode()).digest()
    return b32encode(digest[:20]).decode().lower()
