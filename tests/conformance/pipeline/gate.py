"""The gate before every step's work: a verb says whose may begin; what a commit has begun beyond that waits here."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from waybook.events.subjects import RunKey


class Order(msgspec.Struct, eq=False):
    """How one execution's work is to go, as `run_step` says; by default as the product does it."""

    run: RunKey
    step: str
    branch: int | None = None
    output: Any = msgspec.UNSET
    input: dict[str, Any] = {}
    throws: str | None = None
    route_throws: str | None = None
    background: bool = False
    taken: bool = False


class Body(msgspec.Struct, eq=False):
    """One attempt's work that has begun by its commit: at the gate, going on, or held in the background.

    `lives` says whether its worker does.
    """

    run: RunKey
    step: str
    action: str
    worker: str
    command: str
    lives: Callable[[], bool]
    branch: str | None = None
    order: Order | None = None
    opened: bool = False
    background: bool = False


class Gate:
    """Holds bodies until they may run. `works` lists those whose work was done or tried, in order."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.works: list[Body] = []
        self._orders: list[Order] = []
        self._all: Callable[[Body], bool] | None = None
        self._changed = asyncio.Event()

    async def enter(self, body: Body) -> Order | None:
        """Returns, with the order if there is one, when the body's work may begin."""
        self.bodies.append(body)
        while not self._may_run(body):
            self._changed.clear()
            await self._changed.wait()
        body.opened = True
        self.works.append(body)
        return body.order

    def leave(self, body: Body) -> None:
        if body in self.bodies:
            self.bodies.remove(body)

    def _may_run(self, body: Body) -> bool:
        if not body.lives():
            return False
        for order in self._orders:
            if order.run == body.run and order.step == body.step and _is_branch(order, body):
                order.taken = True
                body.order = order
                self._orders.remove(order)
                return True
        return self._all is not None and self._all(body)

    def order(self, order: Order) -> None:
        """One execution may run, in this way."""
        self._orders.append(order)
        self._changed.set()

    def withdraw(self, order: Order) -> None:
        """The order is not taken and shall not be any more."""
        if order in self._orders:
            self._orders.remove(order)

    def open(self, whose: Callable[[Body], bool]) -> None:
        """Everything that `whose` lets through may run until `close`."""
        self._all = whose
        self._changed.set()

    def close(self) -> None:
        self._all = None

    def waiting(self) -> list[Body]:
        """Bodies that stand before the gate or are held in the background."""
        return [b for b in self.bodies if not b.opened or b.background]


def _is_branch(order: Order, body: Body) -> bool:
    return order.branch is None or body.branch in (str(order.branch), None)
