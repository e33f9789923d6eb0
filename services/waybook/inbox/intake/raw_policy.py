"""The standard parser with headers as they came.

Its `compat32` policy hands out non-ASCII headers with the letters replaced; here they keep the bytes (as surrogates),
so that the charset can be worked out.
"""

import email
from email.message import Message
from email.policy import Compat32
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Part: TypeAlias = Message[str, str]  # generic for type checkers only
else:
    Part = Message


class _RawHeaders(Compat32):
    def header_fetch_parse(self, name: str, value: str) -> str:
        return value


_POLICY = _RawHeaders()


def parse_bytes(raw: bytes) -> Part:
    """The MIME tree of `raw`. Raises what the standard parser raises, RecursionError among it."""
    return email.message_from_bytes(raw, policy=_POLICY)
