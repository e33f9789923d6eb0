"""What all events that the engine writes have in common."""

from typing import Any, ClassVar, Literal

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True, omit_defaults=True, gc=False):
    """Base of all engine events; the JSON member `type` holds the class name.

    `SCHEMA` is the version of the JSON shape; raise it, with an upcaster in `waybook.events.upcasters`, when a
    change is more than a new member with a default. Not tracked by the garbage collector: decoded data holds
    no cycles, and collections would double the time of a fold.
    """

    SCHEMA: ClassVar[int] = 1


class ContextChange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One change of a key: a new value, `value` added to a number, or the key removed.

    `swap`: the new value is set only where there was `expected` (None: no such key).
    """

    op: Literal["set", "add", "delete"]
    key: str
    value: Any = None
    swap: bool = False
    expected: Any = None
