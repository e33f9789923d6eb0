"""The consumer library: the commits of STATE for other services, in order and at least once.

>>> async for item in subscribe("nats://127.0.0.1:4222", after=position, types={"Transitioned"}):
...     for name, event in zip(item.names, item.events, strict=True):
...         ...
...     position = item.position  # store it together with what came of the item

Needs nats-py; nothing but msgspec is imported before the first use.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from waybook.events.codec import Codec
from waybook.events.commit import Commit, Position, event_name
from waybook.events.engine import EngineEvent, EventPublished
from waybook.events.errors import InvalidInput, RetryableError
from waybook.events.headers import types_of
from waybook.events.large_fields import MARK
from waybook.events.objects import whole
from waybook.events.pull import Lost, PositionLost, Pulled, PullReader, ReadRefused, StreamEnds
from waybook.events.subjects import AGENT_TOKEN, RunKey, check_token, parse_state_subject, state_stream

if TYPE_CHECKING:
    from nats.aio.client import Client

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0


class Unreachable(RetryableError):
    """The NATS server does not answer, or the connection was closed; try again later with the stored position."""


class Item(msgspec.Struct, frozen=True):
    """A commit that holds something of what was asked for.

    `events` are the matching ones and `names` their names within the run (`"<version>.<index>"`): the run's key
    and a name tell apart what came twice. `commit` is the whole commit, but for engine events of types that this
    program is too old for. `stored_at` is the server's time in milliseconds since the epoch, UTC. An item without
    events only moves the position (`progress_every`).
    """

    position: Position
    key: RunKey
    commit: Commit
    events: tuple[EngineEvent, ...]
    names: tuple[str, ...]
    headers: Mapping[str, str]
    stored_at: int


async def subscribe(
    server: "str | Sequence[str] | Client",
    *,
    stream: str | None = None,
    after: Position | None = None,
    durable: str | None = None,
    name: str | None = None,
    types: Collection[str] | None = None,
    agents: Collection[str] | None = None,
    tenant: str | None = None,
    codec: Codec | None = None,
    follow: bool = True,
    progress_every: int = 0,
    connect_timeout_s: float = 10.0,
    connect_options: Mapping[str, Any] | None = None,
) -> AsyncGenerator[Item, None]:
    """Commits of `stream` (default: the present STATE), in the order of the stream, each at least once.

    `server` is an address, several of one cluster, or an open nats-py connection, which stays open; an own one is
    made with `connect_options` (credentials, TLS) and gives up after `connect_timeout_s` only the first time.

    Where to begin: behind `after`, the position of the last item that was dealt with, which the caller stores; or
    where the server-side consumer `durable` stands, made at the beginning of the stream when there is none (an item
    counts as done when the next one is asked for; one reader at a time); or at the beginning. Otherwise the consumer
    on the server lasts as long as the reader and is called `name`, at random by default; a fixed name, for one reader
    at a time, lets the server's permissions name it.

    What to see: `types` are names of engine events (`Transitioned`; `EventPublished` for all typed ones) or of
    typed events (`MailReceived`), None for all; `agents` and `tenant` narrow the runs on the server. With
    `progress_every` an item without events is yielded after each such number of commits passed over, so that a
    reader of rare types can store a newer position. With `follow=False` it ends at what is the end now.

    A lost connection, a restarted server or a deleted consumer only delays: reading goes on behind the last item.
    Raises Unreachable, StreamMissing, PositionLost (the stream was cut, or has a hole), ReadRefused, InvalidInput,
    ObjectUnread (a large field of a wanted commit, which stands in the object bucket; LostField when it is gone),
    and what `Codec.decode_known` raises for a commit that this program cannot read.
    """
    source = stream or state_stream()
    if after is not None and after.stream != source:
        raise InvalidInput(f"the position {after} is of another stream than {source}")
    if after is not None and durable is not None:
        raise InvalidInput("give `after` or `durable`: a durable consumer keeps its own position")
    wanted = None if types is None else frozenset(types)
    filters = _filters(source, agents, tenant)
    async with connected(server, connect_timeout_s, connect_options or {}) as (connection, denied):
        reader = PullReader(connection, source, filters, name=name, durable=durable)
        last = after.sequence if after else None
        route = _Route(connection, reader, source, denied, durable=durable is not None, whole=not filters)
        commits = route.commits(last, follow)
        chooser = _Chooser(source, wanted, codec or Codec(), progress_every)
        try:
            async for pulled in commits:
                if MARK in pulled.payload and chooser.wants(pulled):
                    payload = await whole(connection, pulled.payload, pulled.subject)
                    pulled = msgspec.structs.replace(pulled, payload=payload)
                item = chooser.choose(pulled)
                if item is not None:
                    yield item
        finally:
            await commits.aclose()
            await reader.close()


class _Chooser:
    """Decides by the headers whether a commit is wanted, and decodes it only then."""

    def __init__(self, stream: str, wanted: frozenset[str] | None, codec: Codec, progress_every: int) -> None:
        self._stream = stream
        self._wanted = wanted
        self._codec = codec
        self._progress_every = progress_every
        self._passed = 0

    def wants(self, pulled: Pulled) -> bool:
        """Whether its headers name what is wanted, or nothing."""
        present = types_of(pulled.headers)
        return self._wanted is None or present is None or not self._wanted.isdisjoint(present)

    def choose(self, pulled: Pulled) -> Item | None:
        if self.wants(pulled):
            item = self._decode(pulled)
            if item.events:
                self._passed = 0
                return item
        self._passed += 1
        if self._progress_every and self._passed >= self._progress_every:
            self._passed = 0
            return self._decode(pulled)
        return None

    def _decode(self, pulled: Pulled) -> Item:
        commit, indexes = self._codec.decode_known(pulled.payload, self._wanted, pulled.headers, pulled.subject)
        found = [(i, e) for i, e in zip(indexes, commit.events, strict=True) if self._matches(e)]
        return Item(
            position=Position(self._stream, pulled.sequence),
            key=parse_state_subject(pulled.subject),
            commit=commit,
            events=tuple(event for _, event in found),
            names=tuple(event_name(commit.version, index) for index, _ in found),
            headers=pulled.headers,
            stored_at=pulled.stored_at,
        )

    def _matches(self, event: EngineEvent) -> bool:
        if self._wanted is None or type(event).__name__ in self._wanted:
            return True
        return isinstance(event, EventPublished) and event.event in self._wanted


class _Route:
    """The stream's messages from a sequence on, whatever happens to connection, server and consumer.

    `whole`: nothing is filtered out on the server, so the sequences must have no holes. `denied` are the permission
    errors of an own connection.
    """

    def __init__(
        self, connection: "Client", reader: PullReader, stream: str, denied: list[str], *, durable: bool, whole: bool
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._stream = stream
        self._denied = denied
        self._durable = durable
        self._whole = whole
        self._last: int | None = None
        self._end: int | None = None
        self._pause_s = FIRST_PAUSE_S

    async def commits(self, after: int | None, follow: bool) -> AsyncGenerator[Pulled, None]:
        """Everything behind `after`; without `follow` up to what is the stream's end at first."""
        self._last = after
        while True:
            try:
                await _waitconnected(self._connection)
                ends = await self._reader.open(self._last)
                if not follow and self._end is None:
                    self._end = ends.last
                if self._end is not None and ends.pending == 0:
                    return
                async with aclosing(self._undisturbed(ends)) as messages:
                    async for pulled in messages:
                        yield pulled
                return
            except Lost as exc:
                await self._recover(exc)

    async def _undisturbed(self, ends: StreamEnds) -> AsyncGenerator[Pulled, None]:
        """What the open reader brings, as long as nothing is missing. Raises Lost, PositionLost."""
        delivery = 1
        if self._last is None and self._whole and not self._durable:
            self._last = max(ends.first, 1) - 1
        while True:
            pulled = await self._reader.next()
            if pulled.delivery > delivery:
                raise Lost(f"deliveries {delivery} to {pulled.delivery - 1} did not arrive")
            delivery = pulled.delivery + 1
            if self._last is not None:
                if pulled.sequence <= self._last:
                    continue  # delivered again
                if self._whole and pulled.sequence != self._last + 1:
                    raise PositionLost(f"{self._stream} lacks {self._last + 1}: the next message is {pulled.sequence}")
            yield pulled
            self._pause_s = FIRST_PAUSE_S
            self._last = pulled.sequence
            if self._durable:
                await self._reader.acknowledge(pulled)
            if self._end is not None and (self._last >= self._end or pulled.pending == 0):
                return

    async def _recover(self, why: Lost) -> None:
        """Waits a moment before the next try. Raises ReadRefused when the server forbids what a reader needs."""
        if self._denied:
            raise ReadRefused(f"the server refuses to read {self._stream}: {self._denied[0]}") from why
        log.warning(
            "subscription to %s lost, reading on behind %s: %s",
            self._stream,
            self._last,
            why,
            extra={"action": "subscription_lost", "stream": self._stream, "sequence": self._last, "reason": str(why)},
        )
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)


def _filters(stream: str, agents: Collection[str] | None, tenant: str | None) -> list[str]:
    if agents is None and tenant is None:
        return []
    if agents is not None and not agents:
        raise InvalidInput("agents is empty: name at least one, or leave it out for all")
    for agent in agents or ():
        check_token("agent", agent, AGENT_TOKEN)
    owner = "*" if tenant is None else check_token("tenant", tenant)
    _, _, place = stream.partition("_")
    generation, _, shard = place.partition("_")
    return [f"state.{generation or '*'}.{shard or '*'}.{owner}.{agent}.*" for agent in sorted(agents or ("*",))]


async def _waitconnected(connection: "Client") -> None:
    while not connection.is_connected:
        if connection.is_closed:
            raise Unreachable(f"the connection is closed: {connection.last_error or 'by its owner'}")
        await asyncio.sleep(0.05)


@asynccontextmanager
async def connected(
    server: "str | Sequence[str] | Client", timeout_s: float, options: Mapping[str, Any]
) -> AsyncIterator[tuple["Client", list[str]]]:
    """A connection, and where the server's permission errors will be found, which no call raises."""
    denied: list[str] = []
    if not isinstance(server, str | Sequence):
        yield server, denied
        return
    import nats

    complaints: list[Exception] = []

    async def hear(error: Exception) -> None:
        complaints[:] = [error]
        text = str(error)
        if "permissions violation" in text.lower() and ".consumer.delete." not in text.lower():
            denied.append(text)
        log.warning("NATS: %s", text, extra={"action": "nats_error", "error": text})

    settings = {"max_reconnect_attempts": -1, "reconnect_time_wait": 0.5, "error_cb": hear, "name": "waybook-subscribe"}
    servers = server if isinstance(server, str) else list(server)
    try:
        connection = await asyncio.wait_for(nats.connect(servers, **{**settings, **options}), timeout_s)
    except (TimeoutError, OSError, nats.errors.Error) as exc:
        reason = complaints[0] if complaints else exc
        raise Unreachable(f"no NATS server at {server} within {timeout_s} s: {reason or 'no answer'}") from exc
    try:
        yield connection, denied
    finally:
        await connection.close()
