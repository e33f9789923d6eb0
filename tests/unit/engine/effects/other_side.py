"""A model of the other side: what it was told, what it has done, and what it may still do."""

from typing import Literal

import msgspec

CALL_MS = 30_000
SETTLE_MS = 10_000

Answer = Literal["done", "not_done", "nothing"]
Fate = Literal["done", "answer_lost", "refused", "dropped", "slow"]
FATES: tuple[Fate, ...] = ("done", "answer_lost", "refused", "dropped", "slow")


class Slow(msgspec.Struct, frozen=True):
    """A call that was taken and will be worked off until `latest` (ms), or never."""

    text: str
    latest: int


class OtherSide:
    """One recipient. `done` holds the text of each effect that was made; more than one is what must never be."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.slow: list[Slow] = []

    def call(self, text: str, fate: Fate, deadline: int) -> Answer:
        """What the caller hears: `nothing` may mean anything."""
        if fate in ("done", "answer_lost"):
            self.done.append(text)
        if fate == "slow":
            self.slow.append(Slow(text, deadline + SETTLE_MS))
        return "done" if fate == "done" else "not_done" if fate == "refused" else "nothing"

    def work_off(self, now: int, *, all_of_it: bool) -> None:
        """Works off what it has taken, before it is too late for that; what is too late is forgotten."""
        for one in self.slow:
            if one.latest >= now and all_of_it:
                self.done.append(one.text)
        self.slow = [one for one in self.slow if one.latest >= now and not all_of_it]
