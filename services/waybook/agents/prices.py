"""What models cost: prices by model name, for a million tokens each."""

from collections.abc import Mapping

import msgspec

from waybook.events.engine import TokenUsage

ANY = "*"
"""The name under which a price stands for all models that have none of their own."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a million tokens, in whatever unit the owner counts."""

    prompt: float = 0.0
    completion: float = 0.0


class Prices(msgspec.Struct, frozen=True):
    """The owner's list. A model without a price costs nothing: rules and local models have no bill."""

    by_model: Mapping[str, Price] = {}

    def cost(self, model: str | None, usage: TokenUsage) -> int:
        """In millionths of the unit: tokens times the price of a million of them."""
        price = self.by_model.get(model or "") or self.by_model.get(ANY)
        if price is None:
            return 0
        return round(usage.prompt_tokens * price.prompt + usage.completion_tokens * price.completion)
