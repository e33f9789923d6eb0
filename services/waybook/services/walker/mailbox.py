"""What waits for a run, and how much of it fits into one commit."""

from collections import deque

from waybook.services.walker.item import Item

MERGE_LIMIT_BYTES = 200 * 1024


class Mailbox:
    """Inputs in order of arrival."""

    def __init__(self) -> None:
        self._waiting: deque[Item] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, item: Item) -> None:
        """Adds one at the end."""
        self._waiting.append(item)

    def take(self) -> list[Item]:
        """The first ones, as many as are likely to fit into one commit; at least one."""
        batch = [self._waiting.popleft()]
        size = batch[0].size if self._waiting else 0
        while self._waiting and size + self._waiting[0].size <= MERGE_LIMIT_BYTES:
            size += self._waiting[0].size
            batch.append(self._waiting.popleft())
        return batch

    def empty(self) -> list[Item]:
        """All of them."""
        items = list(self._waiting)
        self._waiting.clear()
        return items
