"""Amounts under a cap that many runs share: how much may be done in a day, or for one address."""

from typing import Protocol

import msgspec


class Reservation(msgspec.Struct, frozen=True):
    """An amount that a ledger holds for an execution: `agent` and `run` name the ledger."""

    agent: str
    run: str
    execution: str

    @property
    def name(self) -> str:
        """One word for it, as an intent names it."""
        return f"{self.agent}.{self.run}/{self.execution}"


class Ledgers(Protocol):
    """Injected into a step that asks for it. What is charged is charged once for the execution, however often it runs."""

    async def charge(self, scope: str, *, cap: int, amount: int = 1) -> Reservation | None:
        """Charges `amount` to today's ledger of `scope`; None when more than `cap` would be taken.

        A day ends at midnight UTC. `scope` has letters, digits, `_` and `-`. What came of nothing is given back with
        `release`, or by whoever knows of it later. Raises PortError.
        """
        ...

    async def rate(self, address: str, *, cap: int, within_s: float) -> Reservation | None:
        """Counts one more for an address; None when that would be more than `cap` within the time. Raises PortError."""
        ...

    async def release(self, reservation: Reservation) -> None:
        """Gives back what this execution has charged. Raises PortError."""
        ...
