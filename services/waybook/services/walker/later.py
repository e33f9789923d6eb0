"""What a run's actor means to do later: commands to decide again, a look at the run."""

import asyncio
from collections.abc import Callable

from waybook.services.walker.item import Item

LOOK_S = 2.0
"""How often a run is read while a lease of it is broken: another process may have taken it over."""


class Later:
    """Timers of one actor. `again` gets a command when its time has come, `look` is called when the run is to be read."""

    def __init__(self, again: Callable[[Item], None], look: Callable[[], None]) -> None:
        self._again = again
        self._look = look
        self._postponed: dict[str, tuple[asyncio.TimerHandle, Item]] = {}
        self._looking: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        """Whether a command waits to be decided again."""
        return bool(self._postponed)

    def postpone(self, name: str, item: Item, delay_s: float) -> None:
        """`again` gets the item after that time, unless it is cancelled; `name` is that of its delivery."""
        handle = asyncio.get_running_loop().call_later(delay_s, self._resubmit, name)
        self._postponed[name] = (handle, item)

    def _resubmit(self, name: str) -> None:
        _, item = self._postponed.pop(name)
        self._again(item)

    def now(self) -> None:
        """Everything that was postponed comes again at once."""
        for item in self._taken():
            self._again(item)

    def look_soon(self) -> None:
        """`look` is called after LOOK_S, once, however often this is asked for in between."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look_now)

    def _look_now(self) -> None:
        self._looking = None
        self._look()

    def cancel(self) -> list[Item]:
        """Ends what is to happen later; returns the commands that waited for it."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        return self._taken()

    def leave(self) -> None:
        """The run leaves memory: what refers to it is let go, so that it is freed now, without the garbage collector."""
        del self._again, self._look

    def _taken(self) -> list[Item]:
        postponed = list(self._postponed.values())
        self._postponed.clear()
        for handle, _ in postponed:
            handle.cancel()
        return [item for _, item in postponed]
