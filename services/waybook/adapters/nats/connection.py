"""A connection that lasts: reconnects for ever, answers requests, and speaks port errors only."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import msgspec
import nats.errors
from nats.aio.client import Client

from waybook.adapters.nats.errors import ApiError, port_error
from waybook.adapters.nats.frames import publish_frame
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.wire import Sink, Wire
from waybook.engine.ports import PortMisconfigured, PortUnavailable
from waybook.events.ending import end
from waybook.events.errors import InvalidInput

log = logging.getLogger(__name__)

NO_RESPONDERS = 503
SWEEP_S = 0.2
STALL_S = 1.0
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A message that answers a request. `headers` are the raw block or None."""

    payload: bytes
    headers: bytes | None

    @property
    def status(self) -> int:
        """The inline status (404, 408, 503, ...), 0 when there is none."""
        block = self.headers
        return int(block[9:12]) if block is not None and block[8:9] == b" " else 0


Lost: TypeAlias = PortUnavailable | PortMisconfigured
Receiver: TypeAlias = Callable[[Reply | Lost], None]


class _Pending:
    """A request on its way; `many` keeps it after the first answer."""

    __slots__ = ("deadline", "many", "receive", "subject")

    def __init__(self, receive: Receiver, subject: str, deadline: float, many: bool) -> None:
        self.receive = receive
        self.subject = subject
        self.deadline = deadline
        self.many = many


class Connection:
    """One connection to NATS, shared by the ports of a process (and by one event loop only).

    While the server is away requests fail with PortUnavailable at once, those under way at the moment of the loss
    included (their outcome is unknown). A refusal by permissions fails the request with PortMisconfigured and is
    kept in `refused`. Use as an async context manager, or `open` and `close`.
    """

    def __init__(self, settings: NatsSettings) -> None:
        self.settings = settings
        self.refused: str | None = None
        self._wire: Wire | None = None
        self._ready = asyncio.Event()
        self._closing = False
        self._loop: asyncio.AbstractEventLoop
        self._keeper: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self._sinks: list[tuple[str, Sink]] = []
        self._watchers: list[Callable[[bool], None]] = []
        self.token = secrets.token_hex(11)
        self._prefix = f"{settings.inbox_prefix}.{self.token}."
        self._prefix_size = len(self._prefix)
        self._count = 0
        self._pending: dict[bytes, _Pending] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, settings: NatsSettings, *, wait_s: float = 10.0) -> Self:
        """Connects within `wait_s`. Raises PortUnavailable naming the servers, PortMisconfigured on bad credentials."""
        self = cls(settings)
        self._loop = asyncio.get_running_loop()
        self._sinks.append((self._prefix + "*", self._on_reply))
        deadline = self._loop.time() + wait_s
        while True:
            try:
                await self._connect()
                break
            except PortUnavailable:
                if self._loop.time() >= deadline:
                    raise
                await asyncio.sleep(0.1)
        self._keeper = self._loop.create_task(self._keep(), name="waybook-nats-keeper")
        self._sweep()
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, *, flush_s: float = 1.0) -> None:
        """Sends what was written, for at most `flush_s`, then closes; requests under way fail with PortUnavailable."""
        if self._closing:
            return
        self._closing = True
        wire = self._wire
        if wire is not None and wire.usable:
            wire.flush_frames()
            with suppress(nats.errors.Error, OSError, asyncio.TimeoutError):
                await asyncio.wait_for(wire.flush(), flush_s)
        if self._keeper is not None:
            await end([self._keeper])
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._wire is not None:  # by now it may be another one: the keeper had connected again
            await self._wire.end()
        self._ready.clear()
        self._tell(False)
        self._fail_all(PortUnavailable("the connection to NATS was closed"))

    # -- state

    @property
    def connected(self) -> bool:
        """Whether the server answers, as far as is known."""
        return self._wire is not None and self._wire.usable and self._ready.is_set()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closing

    @property
    def unsent(self) -> int:
        """Bytes written here that the socket did not take yet."""
        return self._wire.unsent if self._wire is not None else 0

    @property
    def client(self) -> Client:
        """The nats-py client of this moment, for the management of streams. Raises PortUnavailable while it is away."""
        if self._wire is None or not self.connected:
            raise PortUnavailable(f"no nats-server at {self._addresses()}")
        return self._wire

    @property
    def server_version(self) -> str:
        """Version of the server at the other end."""
        return str(self._wire._server_info.get("version", "")) if self._wire is not None else ""

    @property
    def max_payload(self) -> int:
        """Largest message that the server takes, in bytes, headers included."""
        return int(self._wire.max_payload) if self._wire is not None else 0

    async def until_connected(self, timeout_s: float | None = None) -> None:
        """Returns when the server answers. Raises PortUnavailable after `timeout_s` or when this was closed."""
        if self._closing:
            raise PortUnavailable("the connection to NATS was closed")
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError as exc:
            raise PortUnavailable(f"no nats-server at {self._addresses()}") from exc

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Calls `watcher` on the loop with True on each connect and with False on each loss and when this is closed."""
        self._watchers.append(watcher)

    # -- sending

    def send(self, frame: bytes) -> None:
        """Sends a frame of the NATS protocol. Raises PortUnavailable when the server is away."""
        wire = self._wire
        if wire is None or not self.connected:
            raise PortUnavailable(f"no nats-server at {self._addresses()}")
        wire.write(frame)

    def publish(self, subject: str, payload: bytes = b"", headers: bytes | None = None, reply: bytes = b"") -> None:
        """Publishes without an answer. `headers` is a block of `header_block`. Raises as `send`, and InvalidInput."""
        self.check_size(subject, len(payload) + len(headers or b""))
        self.send(publish_frame(subject.encode(), reply, payload, headers))

    def check_size(self, subject: str, size: int) -> None:
        """Raises InvalidInput for more bytes than the server takes: it would close the connection instead."""
        if self.connected and size > self.max_payload:
            raise InvalidInput(
                f"a message to {subject} has {size} bytes, the server takes {self.max_payload}; "
                "put large payloads into the object bucket"
            )

    def expect(self, subject: str, receive: Receiver, timeout_s: float | None = None, *, many: bool = False) -> bytes:
        """A reply subject whose answer goes to `receive`, once, or until `forget` when `many`.

        `receive` gets a Lost error when the connection breaks, `timeout_s` pass without an answer, or the server
        forbids publishing to `subject`; with `many` each answer begins the time anew.
        """
        self._count += 1
        token = b"%d" % self._count
        limit = self.settings.request_timeout_s if timeout_s is None else timeout_s
        self._pending[token] = _Pending(receive, subject, self._loop.time() + limit, many)
        return self._prefix.encode() + token

    def forget(self, reply: bytes) -> None:
        """No answer to this reply subject is awaited any more."""
        self._pending.pop(reply[self._prefix_size :], None)

    async def request(
        self, subject: str, payload: bytes = b"", headers: bytes | None = None, timeout_s: float | None = None
    ) -> Reply:
        """Publishes and waits for the answer.

        Raises PortUnavailable (it may have been processed), PortMisconfigured, InvalidInput when it is too large.
        """
        self.check_size(subject, len(payload) + len(headers or b""))
        future: asyncio.Future[Reply | Lost] = self._loop.create_future()
        reply = self.expect(subject, partial(resolve, future), timeout_s)
        try:
            self.send(publish_frame(subject.encode(), reply, payload, headers))
            answer = await future
        finally:
            self.forget(reply)
        if isinstance(answer, Reply):
            return answer
        raise type(answer)(str(answer))

    async def api(self, subject: str, body: object, kind: type[S], timeout_s: float | None = None) -> S | ApiError:
        """Asks the JetStream API (`subject` without `$JS.API.`); an answer that is an error is returned as a value.

        Raises PortUnavailable when nobody answers.
        """
        payload = b"" if body is None else msgspec.json.encode(body)
        reply = await self.request(f"$JS.API.{subject}", payload, timeout_s=timeout_s)
        if reply.status == NO_RESPONDERS:
            raise PortUnavailable(f"JetStream does not answer {subject}")
        try:
            failed = _ERROR.decode(reply.payload).error
            return failed if failed is not None else msgspec.json.decode(reply.payload, type=kind)
        except msgspec.MsgspecError as exc:
            raise PortMisconfigured(
                f"JetStream answered {subject} with something else: {reply.payload[:200]!r}"
            ) from exc

    async def ask(self, subject: str, body: object, kind: type[S], timeout_s: float | None = None) -> S:
        """As `api`, with the server's error raised as a port error."""
        answer = await self.api(subject, body, kind, timeout_s)
        if isinstance(answer, ApiError):
            raise port_error(answer, subject)
        return answer

    def subscribe(self, subject: str, receive: Sink) -> None:
        """Hands every message of `subject` to `receive`, on the reading task, also after reconnects."""
        self._sinks.append((subject, receive))
        if self._wire is not None and self._wire.usable:
            self._wire.sink(subject, receive)

    async def confirm(self, timeout_s: float) -> None:
        """Returns when the server has all that was sent before. Raises PortUnavailable."""
        wire = self._wire
        if wire is None or not self.connected:
            raise PortUnavailable(f"no nats-server at {self._addresses()}")
        wire.flush_frames()
        try:
            async with asyncio.timeout(timeout_s):
                await wire.flush()
        except (nats.errors.Error, TimeoutError) as exc:
            raise PortUnavailable(f"nats-server does not answer a ping: {exc}") from exc

    def unsubscribe(self, subject: str) -> None:
        """Ends a subscription; pulls whose deliveries were to come there end with it."""
        self._sinks = [sink for sink in self._sinks if sink[0] != subject]
        if self._wire is not None and self._wire.usable:
            self._wire.unsink(subject)

    def inbox(self) -> str:
        """A reply subject of its own, to be subscribed to."""
        self._count += 1
        return f"{self._prefix}{self._count}.in"

    # -- keeping it up

    async def _connect(self) -> None:
        s = self.settings
        self._lost.clear()
        wire = Wire(self._on_lost, self._on_refused)
        options: dict[str, Any] = {
            "user": s.user, "password": s.password, "token": s.token, "tls": s.tls,
            "user_credentials": str(s.credentials) if s.credentials else None,
            "nkeys_seed": str(s.nkey_seed) if s.nkey_seed else None,
        }  # fmt: skip
        try:
            async with asyncio.timeout(s.connect_timeout_s * (len(s.servers) + 1)):
                await wire.connect(
                    servers=list(s.servers), name=s.name, allow_reconnect=False, max_reconnect_attempts=1,
                    reconnect_time_wait=0, connect_timeout=s.connect_timeout_s, ping_interval=s.ping_interval_s,  # type: ignore[arg-type]
                    max_outstanding_pings=2, inbox_prefix=s.inbox_prefix, pending_size=0, error_cb=_ignore, **options,
                )  # fmt: skip
            wire.attend()
            attached = self._sinks.copy()
            for subject, receive in attached:
                wire.sink(subject, receive)
            wire.flush_frames()
            async with asyncio.timeout(s.connect_timeout_s):
                await wire.flush()
            if not wire.usable:
                raise nats.errors.UnexpectedEOF
            if self.refused and self._inbox_is_in(self.refused):
                raise PortMisconfigured(f"nats-server forbids us to hear answers: {self.refused}")
        except (nats.errors.Error, OSError, TimeoutError, ValueError) as exc:
            await wire.end()
            text = f"{type(exc).__name__}: {exc}"
            if "authorization" in text.lower() or "credentials" in text.lower():
                raise PortMisconfigured(f"nats-server at {self._addresses()} refuses us: {exc}") from exc
            raise PortUnavailable(f"no nats-server at {self._addresses()}: {text}") from exc
        except BaseException:
            await wire.end()
            raise
        for subject, receive in self._sinks:
            if (subject, receive) not in attached:
                wire.sink(subject, receive)
        self._wire = wire
        self._set_ready(True)

    async def _keep(self) -> None:
        while True:
            await self._lost.wait()
            wait_s = 0.02
            if self._wire is not None:
                await self._wire.end()
            began = time.monotonic()
            while True:
                try:
                    await self._connect()
                    break
                except (PortUnavailable, PortMisconfigured) as exc:
                    log.info("still no NATS", extra={"action": "nats_connect_failed", "error": str(exc)})
                    await asyncio.sleep(wait_s)
                    wait_s = min(wait_s * 1.6, self.settings.reconnect_wait_s)
            away_s = round(time.monotonic() - began, 3)
            log.info("NATS is back", extra={"action": "nats_reconnected", "away_s": away_s})

    def _on_lost(self, wire: Wire, reason: str) -> None:
        if wire is not self._wire or self._closing:
            return
        log.warning("NATS is away", extra={"action": "nats_lost", "reason": reason, "servers": self._addresses()})
        self._set_ready(False)
        self._lost.set()
        self._fail_all(PortUnavailable(f"the connection to NATS was lost: {reason}"))

    def _on_refused(self, text: str) -> None:
        # nats-py lowers the case of the server's text, so subjects are compared without it.
        self.refused = text
        log.error("NATS refuses", extra={"action": "nats_refused", "reason": text})
        error = PortMisconfigured(f"nats-server refuses: {text}")
        for token, pending in list(self._pending.items()):
            if f'"{pending.subject.lower()}"' in text or self._inbox_is_in(text):
                del self._pending[token]
                pending.receive(error)

    def _inbox_is_in(self, refusal: str) -> bool:
        return f'"{self._prefix.lower()}*"' in refusal

    def _set_ready(self, ready: bool) -> None:
        if ready == self._ready.is_set():
            return
        if ready:
            self._ready.set()
        else:
            self._ready.clear()
        self._tell(ready)

    def _tell(self, ready: bool) -> None:
        for watcher in self._watchers:
            watcher(ready)

    def _fail_all(self, error: Lost) -> None:
        pending, self._pending = self._pending, {}
        for waiting in pending.values():
            waiting.receive(error)

    def _on_reply(self, subject: bytes, _reply: bytes, headers: bytes | None, payload: bytes) -> None:
        token = subject[self._prefix_size :]
        pending = self._pending.get(token)
        if pending is None:
            return
        if pending.many:
            pending.deadline = self._loop.time() + self.settings.request_timeout_s
        else:
            del self._pending[token]
        pending.receive(Reply(payload, headers))

    def _sweep(self, due: float | None = None) -> None:
        now = self._loop.time()
        if due is not None and now - due > STALL_S:
            # The loop stood still, or the whole process did: answers that came meanwhile were not read yet.
            for pending in self._pending.values():
                pending.deadline = max(pending.deadline, now + STALL_S)
        for token, pending in [(t, p) for t, p in self._pending.items() if p.deadline < now]:
            del self._pending[token]
            pending.receive(PortUnavailable(f"no answer from NATS in time on {pending.subject}"))
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep, now + SWEEP_S)

    def _addresses(self) -> str:
        return ", ".join(url.rpartition("@")[2] for url in self.settings.servers)


def resolve(future: asyncio.Future[T], value: T) -> None:
    """Sets the result of a future that may have been cancelled or settled before."""
    if not future.done():
        future.set_result(value)


class _ErrorAnswer(msgspec.Struct, frozen=True):
    error: ApiError | None = None


_ERROR = msgspec.json.Decoder(_ErrorAnswer)


async def _ignore(exc: Exception) -> None:
    """nats-py tells here what it also raises or what Wire already caught."""
    log.debug("nats-py: %s", exc, extra={"action": "nats_client_error"})
