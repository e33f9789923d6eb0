"""The object bucket in memory."""

from waybook.adapters.memory.faults import Faults


class MemoryObjects:
    """The port Objects."""

    def __init__(self, *, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self._objects: dict[str, bytes] = {}

    async def put(self, name: str, data: bytes) -> None:
        """See Objects."""
        self.faults.check()
        self._objects[name] = bytes(data)

    async def get(self, name: str) -> bytes:
        """See Objects."""
        self.faults.check()
        return self._objects[name]
