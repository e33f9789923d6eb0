"""Lets a suspect run alone in its process, so that a second death convicts it and nobody else (claims, rule 9)."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Protocol

from waybook.engine.inputs import Decision, Delivered
from waybook.engine.lease import suspects
from waybook.engine.ports import Delivery
from waybook.events.subjects import RunKey
from waybook.services.walker.item import Item

log = logging.getLogger(__name__)


class Company(Protocol):
    """A run in this process: whether it decides, or runs a body, just now."""

    key: RunKey

    @property
    def active(self) -> bool: ...


class House(Protocol):
    """What solitude needs of the walker."""

    def company(self) -> Iterable[Company]:
        """All runs in memory."""
        ...

    def submit(self, key: RunKey, item: Item) -> None:
        """Puts an input before its run."""
        ...

    def receive(self, delivery: Delivery) -> None:
        """Reads a delivery and puts it before its run."""
        ...

    def keep_lease(self, delivery: Delivery) -> bool:
        """Renews a lease for another while; False when it broke, and the delivery is forgotten."""
        ...

    async def hand_back(self, delivery: Delivery) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...


class Solitude:
    """Who waits while a suspect is alone, and whose turn it is.

    A suspect comes as soon as it is found, before anything of it is stored. From then on nothing new is taken, read
    or decided, and what runs goes on to its end. Then one suspect's run after the other has the process to itself,
    until it rests. All that waits keeps its lease. A body that would only wait for the other side of a side effect
    does not keep everybody waiting with it: see `pause`.
    """

    def __init__(self, house: House, done: Callable[[], None]) -> None:
        """`done` is called when the last suspect's turn is over."""
        self._house = house
        self._done = done
        self._suspects: deque[tuple[RunKey, Item]] = deque()
        self._others: list[tuple[RunKey, Item]] = []
        self._unread: list[Delivery] = []
        self._alone: RunKey | None = None
        self._found = asyncio.Event()
        self._closed = False

    @property
    def engaged(self) -> bool:
        """Whether a suspect is alone here, or waits to be."""
        return self._alone is not None or bool(self._suspects)

    def delay(self, delivery: Delivery) -> None:
        """A pull that was under way brought it; it is read when all suspects had their turn."""
        self._unread.append(delivery)
        self._unless_closed()

    def admit(self, key: RunKey, batch: list[Item], held: Collection[str]) -> list[Item]:
        """What of a run's batch may be decided now. Results may, and commands that are `held` already; others wait."""
        if not self.engaged or key == self._alone:
            return batch
        admitted = []
        for item in batch:
            if isinstance(item.input, Delivered) and item.command not in held:
                self._others.append((key, item))
            else:
                admitted.append(item)
        self._unless_closed()
        return admitted

    def set_aside(self, key: RunKey, batch: list[Item], decision: Decision) -> bool:
        """Takes suspects out of a run's batch until it is their turn; whether there were any."""
        if key == self._alone or not any(isinstance(item.input, Delivered) for item in batch):
            return False
        found = suspects(decision)
        aside = [item for item in batch if isinstance(item.input, Delivered) and item.command in found]
        if not aside:
            return False
        batch[:] = [item for item in batch if not (isinstance(item.input, Delivered) and item.command in found)]
        for item in aside:
            log.warning(
                "a command whose worker was lost waits until it runs alone",
                extra={"action": "suspect_waits", "run": str(key), **item.for_log()},
            )
            self._suspects.append((key, item))
        self._found.set()
        self._unless_closed()
        return True

    async def pause(self, seconds: float) -> bool:
        """For a body that has nothing to do for a while: waits, and says whether it could wait to the end.

        It could not when others stand still until it rests, because it is a suspect or a suspect waits for it.
        """
        if not self.engaged:
            self._found.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._found.wait()
        return not self.engaged

    def check(self) -> None:
        """Called whenever a run rests: ends a turn, begins the next when nothing else is under way."""
        if not self.engaged:
            return
        company = [one for one in self._house.company() if one.active]
        if any(one.key == self._alone for one in company):
            return
        self._alone = None
        self.keep()
        if not self._suspects:
            self._end()
        elif all(one.key == self._suspects[0][0] for one in company):
            self._begin()

    def keep(self) -> None:
        """Renews the leases of all that waits; called every now and then."""
        engaged = self.engaged
        self._suspects = deque(entry for entry in self._suspects if self._is_kept(entry[1]))
        self._others = [entry for entry in self._others if self._is_kept(entry[1])]
        self._unread = [delivery for delivery in self._unread if self._house.keep_lease(delivery)]
        if engaged and not self.engaged:  # the suspects' leases broke, those of the others may not have
            self._end()

    def close(self) -> None:
        """A graceful stop: what waits was never decided and goes back to the queue; so does what comes later."""
        self._closed = True
        self._unless_closed()

    def _begin(self) -> None:
        key = self._alone = self._suspects[0][0]
        mine = [item for other, item in self._suspects if other == key]
        self._suspects = deque(entry for entry in self._suspects if entry[0] != key)
        log.warning(
            "a command whose worker was lost runs alone",
            extra={"action": "suspect_alone", "run": str(key), "waiting": len(self._suspects)},
        )
        for item in mine:
            self._house.submit(key, item)

    def _end(self) -> None:
        others, self._others = self._others, []
        unread, self._unread = self._unread, []
        for key, item in others:
            self._house.submit(key, item)
        for delivery in unread:
            self._house.receive(delivery)
        self._done()

    def _is_kept(self, item: Item) -> bool:
        return item.delivery is not None and self._house.keep_lease(item.delivery)

    def _unless_closed(self) -> None:
        if not self._closed:
            return
        waiting = [item.delivery for _, item in (*self._suspects, *self._others)]
        for delivery in (*waiting, *self._unread):
            if delivery is not None:
                self._house.spawn(self._house.hand_back(delivery))
        self._suspects.clear()
        self._others.clear()
        self._unread.clear()
