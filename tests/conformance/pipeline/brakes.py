"""The scripted brakes of a case: what its configuration says of breakers, hours, budgets, plugins, the scorecard."""

import asyncio
from collections.abc import Mapping
from typing import Any

ERROR = "error"


class CaseReadError(Exception):
    """Reading a value raises, as the case says."""


class ScriptedBrakes:
    """An adapter of the product's port Brakes."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    def _value(self, name: str) -> Any:
        value = self.config.get(name)
        if value == ERROR:
            raise CaseReadError(f"{name} cannot be read, as the case says")
        return value

    async def open_breaker(self) -> str | None:
        """See Brakes."""
        value: str | None = self._value("breaker")
        return value

    async def spend_exhausted(self) -> bool:
        """See Brakes."""
        return bool(self._value("spend_budget") == "exhausted")

    async def in_working_hours(self, at: int) -> bool:
        """See Brakes."""
        hours = self._value("working_hours") or {}
        return not hours.get("enabled") or bool(hours.get("open_now", True))

    async def shadow(self) -> bool:
        """See Brakes."""
        return self._value("shadow") is not False if "shadow" in self.config else True

    async def objection(self, sender: str, category: str) -> str | None:
        """See Brakes."""
        if self._value("plugin_gate") == "timeout":
            raise TimeoutError
        await asyncio.sleep(0)
        return None

    async def trial(self, at: int) -> None:
        """See Brakes."""
        return

    async def distrust(self, sender: str, category: str) -> None:
        """See Brakes."""
        return

    async def tightened(self, category: str) -> int:
        """See Brakes."""
        return 0

    async def matched(self, sender: str, category: str) -> int | None:
        """See Brakes."""
        scorecard = self._value("scorecard")
        return int(scorecard["matched"]) if scorecard is not None else None
