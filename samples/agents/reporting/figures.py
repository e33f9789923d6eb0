"""Where the figures come from: a port, so that tests and installations bring their own."""

from typing import Protocol


class Figures(Protocol):
    """A source of figures."""

    async def of(self, topic: str) -> dict[str, int]:
        """The figures of a topic by name. Raises whatever the source raises: the step is tried again."""
        ...


class FixedFigures:
    """Figures that are always the same, for a first run."""

    async def of(self, topic: str) -> dict[str, int]:
        """See Figures."""
        return {"orders": 120, "returns": 7, "revenue": 48_300}
