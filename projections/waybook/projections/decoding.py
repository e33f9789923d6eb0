"""Commits as the read models need them.

Companion fields stay JSON, since they go into a JSON column as they are; what begins a step is read without its bindings
and its claim. Each commit holds some of these, and decoding them took longer than all the rest of it.
"""

from typing import Any, Union

import msgspec

from waybook.events import engine as e
from waybook.events.codec import Codec
from waybook.events.commit import Commit


class TransitionedAsRead(
    e.Transitioned, frozen=True, kw_only=True, tag="Transitioned", rename={"from_state": "from", "to_state": "to"}
):
    """A transition whose fields are not decoded."""

    fields: dict[str, msgspec.Raw] = {}


class FieldsSetAsRead(e.FieldsSet, frozen=True, kw_only=True, tag="FieldsSet"):
    """Fields that are not decoded."""

    fields: dict[str, msgspec.Raw]


class StepBeganAsRead(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag="StepBegan"):
    """The beginning of a step as far as it is looked at here."""

    action: str
    step: str
    trigger: str
    attempt: int
    walk: int
    command: str
    deadline: int
    branch: str | None = None


AS_READ: dict[type, type] = {
    e.Transitioned: TransitionedAsRead,
    e.FieldsSet: FieldsSetAsRead,
    e.StepBegan: StepBeganAsRead,
}
"""What stands for these events."""

_EVENT: Any = Union[tuple(AS_READ.get(kind, kind) for kind in e.EngineEvent.__args__)]  # noqa: UP007 - made here
_COMMIT = msgspec.defstruct(
    "CommitAsRead", [("events", tuple[_EVENT, ...])], bases=(Commit,), frozen=True, kw_only=True, gc=False
)
_decode = msgspec.json.Decoder(_COMMIT).decode


class CommitReader:
    """Decodes what stands in the log; `codec` does it where the bytes are of an older shape, sealed, or broken."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._raised = frozenset(name for name, version in codec.registry.engine_schemas.items() if version > 1)

    def decode(self, payload: bytes, subject: str) -> Commit:
        """The commit that `payload` holds. Raises what the codec raises."""
        try:
            commit: Any = _decode(payload)
        except (msgspec.DecodeError, RecursionError):
            return self._codec.decode(payload, None, subject)
        if commit.schemas is not None or (self._raised and self._may_be_older(commit)):
            return self._codec.decode(payload, None, subject)
        if self._codec.seals and b'"@sealed' in payload:
            return self._codec.decode(payload, None, subject)
        return commit  # type: ignore[no-any-return]

    def _may_be_older(self, commit: Commit) -> bool:
        return any(event.__struct_config__.tag in self._raised for event in commit.events)
