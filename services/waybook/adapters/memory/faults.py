"""Failures on demand."""

import asyncio
from collections import deque

from waybook.engine.ports import PortUnavailable


class Faults:
    """What goes wrong next in the ports that share this object.

    `away` lets every operation fail with PortUnavailable until `back`; unbounded appends wait for that. `fail`
    lets the next operations raise the given errors, one each. `lose_answers` lets the next appends be stored
    without their answer arriving, so that their outcome is unknown and has to be learned.
    """

    def __init__(self) -> None:
        self._here = asyncio.Event()
        self._here.set()
        self._errors: deque[Exception] = deque()
        self._lost_answers = 0

    def away(self) -> None:
        """The server is gone."""
        self._here.clear()

    def back(self) -> None:
        """The server is there again."""
        self._here.set()

    def fail(self, *errors: Exception) -> None:
        """The next operations raise these, one each."""
        self._errors.extend(errors)

    def lose_answers(self, count: int) -> None:
        """The next `count` appends are stored and their answers lost."""
        self._lost_answers += count

    @property
    def is_away(self) -> bool:
        """Whether the server is gone."""
        return not self._here.is_set()

    async def until_back(self) -> None:
        """Returns when the server is there."""
        await self._here.wait()

    def check(self) -> None:
        """Raises what was ordered."""
        if self.is_away:
            raise PortUnavailable("the server is away, as ordered")
        if self._errors:
            raise self._errors.popleft()

    def answer_is_lost(self) -> bool:
        """Whether this append's answer gets lost."""
        if self._lost_answers == 0:
            return False
        self._lost_answers -= 1
        return True
