"""Reading a stream from a sequence on, with a pull consumer that may vanish at any time.

nats-py is imported when a reader opens, so that the contract itself needs msgspec alone. Its own `fetch` is not used:
it keeps the first of several messages back until the whole batch is there or the time is up.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from waybook.events.errors import InvalidInput, RetryableError, TerminalError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js.api import ConsumerConfig

HEARTBEAT_S = 1.0
SILENCE_S = 2.5 * HEARTBEAT_S
EXPIRES_S = 30.0
ANSWER_S = 5.0
UNUSED_S = 300.0  # the server removes an ephemeral consumer that nobody pulled from for so long
ACK_WAIT_S = 3600.0  # a restarted reader does not wait for it: it resets its consumer
BATCH_BYTES = 8 * 1024 * 1024
STREAM_NOT_FOUND = 10059


class Lost(RetryableError):
    """The consumer, the connection or a message was lost on the way; open again where it stopped."""


class StreamMissing(TerminalError):
    """There is no such stream on the server."""


class PositionLost(TerminalError):
    """The stream does not have what comes next: it was cut, or it is another stream of the same name."""


class ReadRefused(TerminalError):
    """The server refuses to read for good; the message holds its words."""


class Pulled(msgspec.Struct, frozen=True):
    """A message of the stream. `delivery` counts within the consumer, `pending` is how many more there are."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]
    sequence: int
    delivery: int
    pending: int
    stored_at: int
    reply: str


class StreamEnds(msgspec.Struct, frozen=True):
    """First and last sequence of the stream when a reader opened, and how many messages are before it."""

    first: int
    last: int
    pending: int


def parse_reply(reply: str) -> tuple[int, int, int, int] | None:
    """Stream sequence, consumer sequence, time in nanoseconds and pending of a delivery; None for a status."""
    tokens = reply.split(".")
    if tokens[:2] != ["$JS", "ACK"] or len(tokens) < 9:
        return None
    # $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
    at = 5 if len(tokens) == 9 else 7
    sequence, delivery, time_ns, pending = (int(token) for token in tokens[at : at + 4])
    return sequence, delivery, time_ns, pending


class PullReader:
    """Messages of `stream` in order, through one pull consumer: an own one without acks, or the durable `durable`.

    An own one is called `name`, at random by default.
    """

    def __init__(
        self,
        connection: "Client",
        stream: str,
        filters: Sequence[str],
        *,
        name: str | None = None,
        durable: str | None = None,
        batch: int = 256,
    ) -> None:
        self._connection = connection
        self._jetstream = connection.jetstream(timeout=ANSWER_S)
        self._name = name
        self._stream = stream
        self._filters = list(filters)
        self._durable = durable
        self._batch = batch
        self._consumer: str | None = None
        self._inbox: Subscription | None = None
        self._arrived: asyncio.Queue[Msg] = asyncio.Queue()
        self._awaited = 0
        self._pull = 0

    async def open(self, after: int | None) -> StreamEnds:
        """Makes the consumer; the next message is the first with a sequence above `after`, None: where it stands.

        Raises StreamMissing, PositionLost, ReadRefused, Lost when the server does not answer.
        """
        import nats.errors
        from nats.js import errors

        await self.close()
        try:
            state = (await self._jetstream.stream_info(self._stream)).state
            if after is not None:
                self._check_position(after, state.first_seq, state.last_seq)
            if self._durable is None:
                pending = await self._open_own(after or 0)
            else:
                pending = await self._open_durable(self._durable, after)
        except errors.ServiceUnavailableError as exc:
            raise Lost(f"JetStream is not available: {exc}") from exc
        except errors.NotFoundError as exc:
            if exc.err_code == STREAM_NOT_FOUND:
                raise StreamMissing(f"there is no stream {self._stream!r} at {self._connection.connected_url}") from exc
            raise Lost(str(exc)) from exc
        except errors.APIError as exc:
            if exc.code is not None and exc.code >= 500:
                raise Lost(str(exc)) from exc
            raise ReadRefused(f"the server refuses to read {self._stream}: {exc.description}") from exc
        except (nats.errors.Error, TimeoutError) as exc:
            raise Lost(f"no answer from the server: {exc!r}") from exc
        return StreamEnds(state.first_seq, state.last_seq, pending)

    def _check_position(self, after: int, first: int, last: int) -> None:
        if after > last:
            raise PositionLost(f"{self._stream} ends at {last}, before the position {after}: it was cut or made anew")
        if after + 1 < first:
            raise PositionLost(f"{self._stream} begins at {first}, what follows the position {after} is gone")

    async def _open_own(self, after: int) -> int:
        from nats.js.api import AckPolicy, ConsumerConfig

        name = self._name or f"subscribe-{secrets.token_hex(8)}"
        if self._name is not None:
            await self._remove(name)  # of a reader that was killed, or of this one's last connection
        config = ConsumerConfig(
            name=name, ack_policy=AckPolicy.NONE, inactive_threshold=UNUSED_S, mem_storage=True, num_replicas=1
        )
        info = await self._jetstream.add_consumer(self._stream, self._start_at(config, after))
        self._consumer = name
        await self._listen()
        return info.num_pending or 0

    async def _remove(self, name: str) -> None:
        from nats.js.errors import NotFoundError

        try:
            await self._jetstream.delete_consumer(self._stream, name)
        except NotFoundError as exc:
            if exc.err_code == STREAM_NOT_FOUND:
                raise

    async def _open_durable(self, name: str, after: int | None) -> int:
        from nats.js.api import AckPolicy, ConsumerConfig
        from nats.js.errors import NotFoundError

        try:
            info = await self._jetstream.consumer_info(self._stream, name)
        except NotFoundError as exc:
            if exc.err_code == STREAM_NOT_FOUND:
                raise
            config = ConsumerConfig(
                name=name, durable_name=name, ack_policy=AckPolicy.ALL, ack_wait=ACK_WAIT_S, max_ack_pending=100_000
            )
            info = await self._jetstream.add_consumer(self._stream, self._start_at(config, after or 0))
        else:
            stored = info.config.filter_subjects or ([info.config.filter_subject] if info.config.filter_subject else [])
            if sorted(stored) != sorted(self._filters):
                raise InvalidInput(f"the durable {name!r} of {self._stream} reads {stored}: use another name")
            # What was delivered and not acknowledged would come after newer messages: begin again behind the last ack.
            await self._jetstream.reset_consumer(self._stream, name, None if after is None else after + 1)
            info = await self._jetstream.consumer_info(self._stream, name)
        self._consumer = name
        await self._listen()
        return info.num_pending or 0

    def _start_at(self, config: "ConsumerConfig", after: int) -> "ConsumerConfig":
        from nats.js.api import DeliverPolicy

        start = {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": after + 1} if after else {}
        if len(self._filters) == 1:
            start["filter_subject"] = self._filters[0]
        elif self._filters:
            start["filter_subjects"] = self._filters
        return config.evolve(**start)

    async def _listen(self) -> None:
        arrived: asyncio.Queue[Msg] = asyncio.Queue()

        async def keep(message: "Msg") -> None:
            arrived.put_nowait(message)

        self._arrived = arrived
        self._awaited = 0
        self._inbox = await self._connection.subscribe(f"{self._connection.new_inbox()}.*", cb=keep)

    async def next(self) -> Pulled:
        """The next message, as soon as there is one. Raises Lost when the consumer has gone or fell silent."""
        while True:
            if self._awaited <= 0:
                await self._ask()
            message = await self._receive()
            place = parse_reply(message.reply)
            if place is None:
                self._take_status(message)
                continue
            self._awaited -= 1
            sequence, delivery, time_ns, pending = place
            return Pulled(
                subject=message.subject,
                payload=message.data,
                headers=message.headers or {},
                sequence=sequence,
                delivery=delivery,
                pending=pending,
                stored_at=time_ns // 1_000_000,
                reply=message.reply,
            )

    async def _ask(self) -> None:
        import nats.errors

        if self._inbox is None or self._consumer is None:
            raise Lost("the reader is not open")
        self._pull += 1
        request = {
            "batch": self._batch,
            "max_bytes": BATCH_BYTES,
            "expires": int(EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        try:
            await self._connection.publish(subject, msgspec.json.encode(request), self._reply_subject())
        except nats.errors.Error as exc:
            raise Lost(f"the connection failed: {exc!r}") from exc
        self._awaited = self._batch

    def _reply_subject(self) -> str:
        assert self._inbox is not None
        return f"{self._inbox.subject.removesuffix('*')}{self._pull}"

    async def _receive(self) -> "Msg":
        if not self._arrived.empty():
            return self._arrived.get_nowait()
        try:
            # Not `wait_for`, which on Python 3.11 swallows a cancellation that comes with the message.
            async with asyncio.timeout(SILENCE_S):
                return await self._arrived.get()
        except TimeoutError as exc:
            raise Lost(f"nothing from the server for {SILENCE_S} s") from exc

    def _take_status(self, message: "Msg") -> None:
        headers = message.headers or {}
        status, text = headers.get("Status"), headers.get("Description", "")
        if status == "100" or message.subject != self._reply_subject():
            return  # a heartbeat, or the end of an earlier request
        if status == "503" or (status == "409" and ("Deleted" in text or "Shutdown" in text)):
            raise Lost(f"the consumer has gone: {status} {text}")
        if status not in ("404", "408", "409"):
            raise Lost(f"the server ended the request: {status} {text}")
        self._awaited = 0  # the request is over: its time, its size, or another leader

    async def acknowledge(self, pulled: Pulled) -> None:
        """Of a durable: this message and all before it are done with. Best effort, without an answer."""
        import nats.errors

        try:
            await self._connection.publish(pulled.reply, b"+ACK")
        except nats.errors.Error as exc:
            raise Lost(f"the connection failed: {exc!r}") from exc

    async def close(self) -> None:
        """Stops listening and removes an own consumer; one that cannot be removed now ends by itself."""
        import nats.errors

        inbox, consumer = self._inbox, self._consumer
        self._inbox = self._consumer = None
        if not self._connection.is_connected:
            return
        try:
            if inbox is not None:
                await inbox.unsubscribe()
            if consumer is not None and self._durable is None:
                await self._remove(consumer)
        except (nats.errors.Error, TimeoutError):
            return
