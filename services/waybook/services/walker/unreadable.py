"""What people are told whose run cannot be read: a stored commit that this program cannot decode, or one too many."""

from collections.abc import Sequence
from contextlib import suppress

from waybook.engine.errors import HistoryHole
from waybook.engine.inputs import Delivered, Refused
from waybook.engine.ports import PortError
from waybook.events.codec import UndecodableCommit
from waybook.events.subjects import RunKey
from waybook.services.walker.item import Item
from waybook.services.walker.office import Office


async def told_unreadable(office: Office, key: RunKey, batch: Sequence[Item], error: Exception) -> list[Item]:
    """Refuses what people asked of the run when `error` says that its history cannot be read; returns all other items.

    Those come again, and a program that can read it may take them. A person's command expires before that, and who gave
    it hears the reason instead of nothing. Only a first delivery is answered: nothing can be open under it.
    """
    if not isinstance(error, UndecodableCommit | HistoryHole):
        return list(batch)
    left: list[Item] = []
    for item in batch:
        asked, delivery = item.input, item.delivery
        is_first = delivery is not None and delivery.claim.delivery == 1 and not office.is_broken(delivery)
        if delivery is None or not is_first or not isinstance(asked, Delivered) or not asked.person:
            left.append(item)
            continue
        with suppress(PortError):  # then it lapses, too
            text = f"the run's history cannot be read, so nothing can be decided on it: {error}"
            await office.correspondence.refuse(delivery, key, asked.command, Refused("unreadable", text))
            await office.finish(delivery)
            continue
        left.append(item)
    return left
