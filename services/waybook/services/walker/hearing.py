"""Inputs that somebody in this process waits to hear about: intents, outcomes of side effects, parking."""

from collections.abc import Mapping

import msgspec

from waybook.engine.inputs import Outcome
from waybook.engine.intents import Intend
from waybook.engine.ports import Delivery
from waybook.engine.run import Run
from waybook.services.walker.item import Item, Told


def tell(item: Item, outcome: Outcome, run: Run | None) -> None:
    """Says what was decided and stored to whoever still waits."""
    if item.heard is not None and not item.heard.done():
        item.heard.set_result(Told(outcome, run))


def tell_error(item: Item, error: Exception) -> None:
    """Says that nothing will be decided."""
    if item.heard is not None and not item.heard.done():
        item.heard.set_exception(error)


def received(item: Item, run: Run | None, holds: Mapping[str, Delivery]) -> Item:
    """An intent with the time at which the command came under which it is: an approval has to hold then."""
    if not isinstance(item.input, Intend) or run is None:
        return item
    action = run.actions.get(item.input.action)
    delivery = holds.get(action.command) if action is not None else None
    if delivery is None:
        return item
    return msgspec.structs.replace(item, input=msgspec.structs.replace(item.input, received_at=delivery.received_at))
