"""Points at which a case may go on in several ways; the runner walks all of them (every order of `parallel`, ...)."""

from collections.abc import Iterator


class Choices:
    """One pass through a case: `choose` answers along a given beginning, then with 0; `taken` says what there was."""

    def __init__(self, beginning: tuple[int, ...] = ()) -> None:
        self._beginning = beginning
        self.taken: list[tuple[int, int, str]] = []

    def choose(self, what: str, ways: int) -> int:
        """Which of `ways` this pass takes, from 0."""
        place = len(self.taken)
        way = self._beginning[place] if place < len(self._beginning) else 0
        self.taken.append((way, ways, what))
        return way

    def following(self) -> tuple[int, ...] | None:
        """The beginning of the next pass, or None when all ways were walked."""
        for place in reversed(range(len(self.taken))):
            way, ways, _ = self.taken[place]
            if way + 1 < ways:
                return (*(w for w, _, _ in self.taken[:place]), way + 1)
        return None

    def __str__(self) -> str:
        return ", ".join(f"{what} no. {way + 1} of {ways}" for way, ways, what in self.taken)


def passes() -> Iterator[Choices]:
    """One Choices for each pass; each must be walked before the next is taken."""
    beginning: tuple[int, ...] | None = ()
    while beginning is not None:
        choices = Choices(beginning)
        yield choices
        beginning = choices.following()
