"""Fan-out and fan-in: one step returns a list, each element is worked on by itself, a fixed list joins them.

`Annotated[list[Piece], Exactly(3)]` waits until there are exactly three; a plain `list[Piece]` would run the step for
every piece. `FixedList(Piece, 3)` says the same in short, for those who use no type checker.
"""

from typing import Annotated

from waybook.agents import Agent, Event, Exactly, StartEvent, StopEvent, step

PARTS = 3


class Text(StartEvent, frozen=True, kw_only=True):
    words: list[str]


class Part(Event, frozen=True, kw_only=True):
    number: int
    words: list[str]


class Counted(Event, frozen=True, kw_only=True):
    number: int
    letters: int


class Total(StopEvent, frozen=True, kw_only=True):
    letters: int


class LetterCount(Agent):
    """Counts letters in three parts, side by side."""

    @step
    async def split(self, text: Text) -> list[Part]:
        return [Part(number=i, words=text.words[i::PARTS]) for i in range(PARTS)]

    @step
    async def count(self, part: Part) -> Counted:
        return Counted(number=part.number, letters=sum(len(word) for word in part.words))

    @step
    async def add(self, counted: Annotated[list[Counted], Exactly(PARTS)]) -> Total:
        return Total(letters=sum(one.letters for one in counted))
