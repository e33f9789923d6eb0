"""`@policy`: the kill switch, and the values by which decisions are made."""

from typing import Any

import msgspec

from waybook.engine.run import Run
from waybook.events import engine as e

_VERSION, _VALUES, _SWITCH = "version", "values", "kill_switch"


class KillSwitch(msgspec.Struct, frozen=True):
    """Whether sends are stopped; who turned it last, why, and when (ms, UTC)."""

    on: bool = False
    by: str | None = None
    reason: str | None = None
    at: int | None = None


class Policy(msgspec.Struct, frozen=True):
    """The policy as it stands. `version` counts its changes, 0: never set; the kill switch is no part of it."""

    version: int = 0
    values: dict[str, Any] = {}
    kill_switch: KillSwitch = KillSwitch()


def policy_of(run: Run | None) -> Policy:
    """The policy of a folded `@policy`; None: nothing was ever set."""
    if run is None:
        return Policy()
    fields = run.fields
    return Policy(fields.get(_VERSION, 0), fields.get(_VALUES, {}), fields.get(_SWITCH, KillSwitch()))


def fold_change(run: Run, event: e.PolicyChanged, name: str, at: int) -> None:
    merged = {**run.fields.get(_VALUES, {}), **event.values}
    run.fields[_VALUES] = {key: value for key, value in merged.items() if value is not None}
    run.fields[_VERSION] = run.fields.get(_VERSION, 0) + 1


def fold_switch(run: Run, event: e.KillSwitchSet, name: str, at: int) -> None:
    run.fields[_SWITCH] = KillSwitch(event.on, event.by, event.reason, at)
