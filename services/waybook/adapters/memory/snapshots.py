"""The bucket of snapshots in memory."""

from waybook.events.subjects import RunKey


class MemorySnapshots:
    """The port Snapshots. `asked` counts reads."""

    def __init__(self) -> None:
        self.kept: dict[RunKey, bytes] = {}
        self.asked = 0

    async def put(self, key: RunKey, data: bytes) -> None:
        """See Snapshots."""
        self.kept[key] = data

    async def get(self, key: RunKey) -> bytes | None:
        """See Snapshots."""
        self.asked += 1
        return self.kept.get(key)
