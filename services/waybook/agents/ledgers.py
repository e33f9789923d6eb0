"""Amounts under a cap that many runs share: how much may be done in a day, or for one address."""

from typing import Protocol


class Ledgers(Protocol):
    """Injected into a step that asks for it. What is charged is charged once for the execution, however often it runs."""

    async def charge(self, scope: str, *, cap: int, amount: int = 1) -> bool:
        """Charges `amount` to today's ledger of `scope`, unless more than `cap` would be taken; whether it could.

        A day ends at midnight UTC. `scope` has letters, digits, `_` and `-`. Nothing is given back. Raises PortError.
        """
        ...

    async def rate(self, address: str, *, cap: int, within_s: float) -> bool:
        """Counts one more for an address, unless that would be more than `cap` within the time. Raises PortError."""
        ...
