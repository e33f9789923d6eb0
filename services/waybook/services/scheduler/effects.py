"""What the relay does, and the ids under which it does it: made of (run, version, index), never used again."""

from typing import Any

import msgspec

from waybook.engine.ports import TimerRef
from waybook.events.subjects import RunKey


class ArmTimer(msgspec.Struct, frozen=True):
    """Arm this timer."""

    timer: TimerRef


class CancelTimer(msgspec.Struct, frozen=True):
    """Take the timer `name` of a run back."""

    key: RunKey
    name: str


class Give(msgspec.Struct, frozen=True):
    """Give a run a command; the same `id` is the same command, however often it is given."""

    id: str
    key: RunKey
    verb: str
    payload: Any = None


class StopSends(msgspec.Struct, frozen=True):
    """The kill switch of a tenant was set by the event `cause`: its runs with a send that has not begun look again."""

    tenant: str
    cause: str


Effect = ArmTimer | CancelTimer | Give | StopSends


def command_id(key: RunKey, name: str, verb: str) -> str:
    """The id of the command that follows from the event `name` of a run."""
    return f"{key}/{name}/{verb}"


def handed_over(timer: TimerRef) -> Give:
    """The command by which a run learns that its timer fired."""
    return Give(command_id(timer.key, timer.name, "timer"), timer.key, "timer", {"timer": timer.name})
