"""What waits for a run, and how much of it fits into one commit."""

from collections import deque

from waybook.services.walker.item import Item

MERGE_LIMIT_BYTES = 200 * 1024


class Mailbox(deque[Item]):
    """Inputs in order of arrival."""

    def take(self) -> list[Item]:
        """The first ones, as many as are likely to fit into one commit; at least one."""
        batch = [self.popleft()]
        size = batch[0].size if self else 0
        while self and size + self[0].size <= MERGE_LIMIT_BYTES:
            size += self[0].size
            batch.append(self.popleft())
        return batch

    def empty(self) -> list[Item]:
        """All of them."""
        items = list(self)
        self.clear()
        return items
