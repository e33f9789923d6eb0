"""What the leader says of a stream of STATE."""

import base64
import re
import time
from datetime import datetime
from typing import NamedTuple

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.errors import NO_MESSAGE, NO_STREAM, ApiError, port_error
from waybook.events import headers

_COMMIT_ID = re.compile(rf"^{headers.COMMIT}: *(.*?)\r?$", re.IGNORECASE | re.MULTILINE)


class StreamState(msgspec.Struct, frozen=True):
    """The stream's bounds. `last_seq` stays when messages are deleted."""

    messages: int
    first_seq: int
    last_seq: int


class StoredMessage(NamedTuple):
    """A message's commit id (empty: none) and when the server stored it, in ms, UTC."""

    commit_id: str
    stored_at: int


class _Info(msgspec.Struct, frozen=True):
    state: StreamState


class _Message(msgspec.Struct, frozen=True):
    seq: int
    time: str
    hdrs: str = ""


class _Got(msgspec.Struct, frozen=True):
    message: _Message


class Stream:
    """One stream; all reads go to its leader. They raise PortUnavailable and PortMisconfigured."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.name = name
        self._connection = connection

    async def state(self) -> StreamState | None:
        """The stream's bounds, None when there is no such stream."""
        info = await self._connection.api(f"STREAM.INFO.{self.name}", None, _Info)
        if isinstance(info, ApiError):
            if info.err_code in NO_STREAM:
                return None
            raise port_error(info, f"stream {self.name}")
        return info.state

    async def message(self, sequence: int) -> StoredMessage | None:
        """What stands at `sequence`, None when nothing does."""
        got = await self._connection.api(f"STREAM.MSG.GET.{self.name}", {"seq": sequence}, _Got)
        if isinstance(got, ApiError):
            if got.err_code in NO_MESSAGE:
                return None
            raise port_error(got, f"message {sequence} of {self.name}")
        block = base64.b64decode(got.message.hdrs).decode("utf-8", "replace")
        found = _COMMIT_ID.search(block)
        return StoredMessage(found[1].strip() if found is not None else "", milliseconds(got.message.time))


class Lag(NamedTuple):
    """How far somebody at a position is behind: commits, and the age of the oldest of them in seconds (0.0: none).

    `last_sequence` is None when there is no such stream.
    """

    last_sequence: int | None
    events: int
    seconds: float


async def lag_behind(stream: Stream, position: int) -> Lag:
    """How far `position` is behind the end of `stream`. Raises as Stream does."""
    state = await stream.state()
    last = state.last_seq if state is not None else None
    behind = max(0, (last or 0) - position)
    oldest = await stream.message(position + 1) if behind else None
    seconds = max(0.0, time.time() - oldest.stored_at / 1000) if oldest is not None else 0.0
    return Lag(last, behind, round(seconds, 3))


def milliseconds(rfc3339: str) -> int:
    """A server's time, which has nanoseconds, in ms since the epoch."""
    return int(datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", rfc3339)).timestamp() * 1000)
