"""What waits for a run, and how much of it fits into one commit."""

from collections import deque

from waybook.engine.inputs import Completed, Delivered, Input, Start
from waybook.services.walker.correspondence import Item

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
        size = _size(batch[0].input)
        while self._waiting and size + _size(self._waiting[0].input) <= MERGE_LIMIT_BYTES:
            size += _size(self._waiting[0].input)
            batch.append(self._waiting.popleft())
        return batch

    def empty(self) -> list[Item]:
        """All of them."""
        items = list(self._waiting)
        self._waiting.clear()
        return items


def _size(one: Input) -> int:
    """Bytes that an input adds to a commit, roughly: its payloads and the engine's own events."""
    if isinstance(one, Completed):
        return 2048 + sum(len(bytes(o.payload)) for o in one.outputs)
    if isinstance(one, Delivered) and isinstance(one.body, Start):
        return 2048 + len(bytes(one.body.output.payload))
    return 2048
