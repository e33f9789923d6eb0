"""The tables `[intake]` and `[spend]` of `waybook.toml`."""

from typing import Annotated

import msgspec

from waybook.agents.prices import Price
from waybook.engine.aggregates.sender import Rate

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class IntakeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How fast mails of one sender begin that come by a live channel: `per_minute`, after `burst` at once.

    By default as fast as they come. Files that a person names never wait.
    """

    per_minute: Count | None = None
    burst: Count = 20

    @property
    def rate(self) -> Rate | None:
        """For a walker."""
        return Rate(self.per_minute, self.burst) if self.per_minute is not None else None


class SpendSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What models may cost on a day, UTC, before replies are left to people; `prices`: by model, of a million tokens.

    The price of `*` is that of every model without one of its own. Nothing is counted without prices.
    """

    daily: Amount | None = None
    prices: dict[str, Price] = {}
