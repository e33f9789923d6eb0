"""One connection to one nats-server, from the first to the last byte. It never reconnects: its owner makes a new one.

nats-py does the handshake, TLS, authentication, pings and parsing. Its publish, request and subscription queues cost
more than a commit may (a task, a future and a queue for each message), and its own reconnect sends buffered messages
late and may hang on a peer that does not read. So this class takes messages before they are queued and writes frames
that others built. It leans on private members of nats-py 2.16; `tests/contract/test_wire.py` holds them.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from nats.aio.client import Client
from nats.protocol.parser import STALE_CONNECTION

from waybook.events.ending import end

log = logging.getLogger(__name__)

# (subject, reply, headers with their first line or None, payload)
Sink = Callable[[bytes, bytes, bytes | None, bytes], None]

PERMISSIONS = "permissions violation"


class Wire(Client):
    """A nats-py client whose subscriptions are synchronous functions and whose loss is told at once, and once."""

    def __init__(self, on_lost: Callable[["Wire", str], None], on_refused: Callable[[str], None]) -> None:
        super().__init__()
        self._sinks: dict[int, Sink] = {}
        self._sids: dict[str, int] = {}
        self._on_lost = on_lost
        self._on_refused = on_refused
        self._lost = False
        self._frames: list[bytes] = []

    @property
    def usable(self) -> bool:
        """Whether frames can be written now."""
        return bool(self.is_connected) and not self._lost

    def sink(self, subject: str, receive: Sink) -> None:
        """Subscribes; every message of `subject` is handed to `receive` on the reading task, which it must not block."""
        self._sid += 1
        self._sinks[self._sid] = receive
        self._sids[subject] = self._sid
        self.write(b"SUB %b %d\r\n" % (subject.encode(), self._sid))

    def unsink(self, subject: str) -> None:
        """Ends the subscription that `sink` made; what is still on its way is dropped."""
        sid = self._sids.pop(subject, None)
        if sid is not None:
            del self._sinks[sid]
            self.write(b"UNSUB %d\r\n" % sid)

    def write(self, frame: bytes) -> None:
        """Sends a frame together with the others of this turn of the loop; dropped when the connection is lost."""
        if not self._frames:
            asyncio.get_running_loop().call_soon(self.flush_frames)
        self._frames.append(frame)

    @property
    def unsent(self) -> int:
        """Bytes that the socket did not take yet."""
        if not self.usable:
            return 0
        size: int = self._transport._io_writer.transport.get_write_buffer_size()  # type: ignore[union-attr]
        return size

    def flush_frames(self) -> None:
        """Sends what was written in this turn of the loop now."""
        frames, self._frames = self._frames, []
        if self.usable:
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))  # type: ignore[union-attr]

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        receive = self._sinks.get(sid)
        if receive is None:
            await super()._process_msg(sid, subject, reply, data, headers)  # type: ignore[arg-type]
            return
        try:
            receive(subject, reply, headers, data)
        except Exception:
            # The reading task serves everybody; nats-py would end it without a word.
            log.exception("a receiver of messages failed", extra={"action": "sink_failed", "subject": subject.decode()})

    async def _process_err(self, err_msg: str) -> None:
        if PERMISSIONS in err_msg:
            self._on_refused(err_msg.strip("'"))
        else:
            self._lose(err_msg.strip("'") if STALE_CONNECTION not in err_msg else STALE_CONNECTION)

    async def _process_op_err(self, e: Exception) -> None:
        self._lose(str(e) or type(e).__name__)

    def _lose(self, reason: str) -> None:
        if not self._lost:
            self._lost = True
            self._on_lost(self, reason)

    async def end(self) -> None:
        """Ends the connection at once; what was not sent is dropped."""
        self._lost = True
        self._status = Client.CLOSED
        tasks = [self._reading_task, self._ping_interval_task, self._flusher_task]
        ended: list[asyncio.Task[Any]] = [t for t in tasks if t is not None and t is not asyncio.current_task()]
        for task in ended:
            task.cancel()
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
        await end(ended)

    def attend(self) -> None:
        """Tells the loss also when the reading task ends for a reason that nats-py only logs."""
        assert self._reading_task is not None
        self._reading_task.add_done_callback(lambda _: self._lose("the reading task ended"))
