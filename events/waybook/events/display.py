"""Display events: what steps show while they run, for clients that watch a run. Best effort, never in STATE.

>>> display = Display()
>>> async for shown in watch("nats://127.0.0.1:4222", key, after=position):
...     if (news := display.take(shown)) == "restarted":
...         ...  # the step is tried again: what its earlier attempt showed is to be taken away
...     elif news == "new":
...         ...
...     position = shown.position  # where to go on after a pause

Needs nats-py; nothing but msgspec is imported before the first use.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from waybook.events.errors import RetryableError
from waybook.events.pull import Lost, PositionLost, PullReader
from waybook.events.subjects import RunKey
from waybook.events.subscribe import connected

if TYPE_CHECKING:
    from nats.aio.client import Client

STREAM = "TRACE"
KIND = "display"
TRIES = 20


class NotWatchable(RetryableError):
    """The server lost the reader again and again; go on behind the last position later."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One display event of a run. `event` is its type, `body` its fields as JSON.

    `execution` names what is done, whichever attempt at it this is; `attempt` counts from 1, `offset` from 0 within the
    attempt. `position` is its place among all that is shown: a reader goes on behind it. `at` is the server's time when
    it came, ms since the epoch, UTC.
    """

    run: str
    step: str
    execution: str
    action: str
    attempt: int
    offset: int
    event: str
    body: msgspec.Raw
    position: int = 0
    at: int = 0

    @property
    def fields(self) -> dict[str, Any]:
        """The event's fields."""
        return msgspec.json.decode(self.body, type=dict[str, Any])

    @property
    def text(self) -> str | None:
        """Its field `text`, where it has one."""
        text = self.fields.get("text")
        return text if isinstance(text, str) else None


def display_kind(key: RunKey) -> str:
    """The kind of trace that display events of a run are."""
    return f"{KIND}.{key.agent}.{key.run}"


def display_subject(key: RunKey) -> str:
    """The subject of all display events of a run."""
    return f"trace.{key.tenant}.{display_kind(key)}"


class Display:
    """What a watcher has to show: of each execution only the newest attempt, and nothing twice. Pure."""

    def __init__(self) -> None:
        self.pieces: dict[str, list[Shown]] = {}

    def take(self, shown: Shown) -> Literal["new", "restarted"] | None:
        """What a display event means: something to add, a new attempt in place of what was shown of the execution
        before, or None: it was shown, or a later attempt is under way.
        """
        pieces = self.pieces.get(shown.execution)
        if pieces is None or pieces[-1].attempt < shown.attempt:
            self.pieces[shown.execution] = [shown]
            return "new" if pieces is None else "restarted"
        if pieces[-1].attempt > shown.attempt or pieces[-1].offset >= shown.offset:
            return None
        pieces.append(shown)
        return "new"

    def text(self, execution: str) -> str:
        """The text that an execution has shown so far: the fields `text` of its events in a row."""
        return "".join(shown.text or "" for shown in self.pieces.get(execution, ()))


async def watch(
    server: "str | Sequence[str] | Client",
    key: RunKey,
    *,
    after: int | None = None,
    follow: bool = True,
    connect_timeout_s: float = 10.0,
    connect_options: Mapping[str, Any] | None = None,
) -> AsyncGenerator[Shown, None]:
    """The display events of a run behind the position `after` (None: all that are still there), in order.

    With `follow=False` it ends at what is the end now, otherwise never: a run does not tell here that it has ended.
    What the stream has dropped meanwhile is passed over. Raises Unreachable, StreamMissing, ReadRefused, NotWatchable.
    """
    position = after
    lost = 0
    async with connected(server, connect_timeout_s, connect_options or {}) as (connection, _):
        reader = PullReader(connection, STREAM, [display_subject(key)])
        try:
            while True:
                try:
                    if await _open(reader, position) == 0 and not follow:
                        return
                    while True:
                        pulled = await reader.next()
                        position, lost = pulled.sequence, 0
                        yield msgspec.structs.replace(
                            msgspec.json.decode(pulled.payload, type=Shown), position=position, at=pulled.stored_at
                        )
                        if not follow and pulled.pending == 0:
                            return
                except Lost as error:
                    lost += 1
                    if lost == TRIES:
                        raise NotWatchable(f"the display of {key} cannot be read: {error}") from error
        finally:
            await reader.close()


async def _open(reader: PullReader, after: int | None) -> int:
    """How many there are; a position whose successors were dropped means the first that is left."""
    try:
        return (await reader.open(after)).pending
    except PositionLost:
        return (await reader.open(None)).pending
