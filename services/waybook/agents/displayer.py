"""Shows progress to whoever watches a run, beside its events."""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable

from waybook.events.typed import DisplayEvent

Send = Callable[[DisplayEvent, int], Awaitable[None]]


class TextChunk(DisplayEvent, frozen=True, kw_only=True):
    """A piece of a text, to be shown behind those before it."""

    text: str


class Progress(DisplayEvent, frozen=True, kw_only=True):
    """How far a step is: `done` of `total`, where that can be said."""

    text: str
    done: int | None = None
    total: int | None = None


class Displayer:
    """Sends display events to clients: progress, thoughts, pieces of a text. Best effort, never part of STATE.

    Each carries the number of the attempt and its place within it (`offset`, from 0), so that a reader who was away
    goes on where it stopped, and the text of a step that is tried again never stands there twice. What must not be
    lost belongs into the events that the step returns.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._offset = 0

    async def show(self, event: DisplayEvent) -> None:
        """Sends one display event. Never raises for a server that is away."""
        if not isinstance(event, DisplayEvent):
            raise TypeError(f"{type(event).__name__} is no DisplayEvent; return it from the step instead")
        offset, self._offset = self._offset, self._offset + 1
        await self._send(event, offset)

    async def progress(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Shows how far the step is."""
        await self.show(Progress(text=text, done=done, total=total))

    async def stream(self, pieces: AsyncIterable[str] | Iterable[str]) -> str:
        """Shows the pieces of a text as they come, and returns the whole: `await displayer.stream(model.stream(...))`."""
        whole = []
        if isinstance(pieces, AsyncIterable):
            async for piece in pieces:
                whole.append(piece)
                await self.show(TextChunk(text=piece))
        else:
            for piece in pieces:
                whole.append(piece)
                await self.show(TextChunk(text=piece))
        return "".join(whole)
