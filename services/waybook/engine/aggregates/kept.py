"""The types of what aggregates hold in their fields, for a fold that was stored as JSON and is read again."""

from typing import Any

import msgspec

from waybook.engine.aggregates.judged import Moved, Tally
from waybook.engine.aggregates.ledger import Reservation
from waybook.engine.aggregates.outcomes import Counts
from waybook.engine.aggregates.policy import KillSwitch
from waybook.engine.aggregates.sender import Block, Distrust

_TYPES: dict[str, Any] = {
    "held": dict[str, Reservation],
    "kill_switch": KillSwitch,
    "people": dict[str, tuple[str, ...]],
    "block": Block,
    "distrust": dict[str, Distrust],
    "spans": dict[str, Counts],
    "days": dict[str, Tally],
    "moved": Moved,
}


def restored(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an aggregate as its fold leaves them. Raises msgspec.ValidationError for others."""
    return {name: msgspec.convert(v, _TYPES[name]) if name in _TYPES else v for name, v in fields.items()}
