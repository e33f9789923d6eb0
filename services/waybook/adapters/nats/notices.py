"""Commits of STATE by their headers, through the durable `relay`."""

import asyncio
import re
from collections.abc import Collection, Sequence

import msgspec

from waybook.adapters.large_fields import LargeFields
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.delivery import ack_fields
from waybook.adapters.nats.errors import NO_CONSUMER, ApiError, port_error
from waybook.adapters.nats.frames import parse_headers, publish_frame
from waybook.adapters.nats.objects import NatsObjects
from waybook.adapters.nats.outcome import LeaderReads
from waybook.adapters.nats.pull import Puller, Raw
from waybook.engine.ports import Notice, PortUnavailable, Record
from waybook.events.headers import PARENT, TYPES

CONSUMER = "relay"
ACK_WAIT_S = 60.0

LULL_S = 0.05
"""How long after a pull that brought something the next one is sent: under load one pull for many commits costs a
fraction of one for each, and a timer does not mind."""


class _Any(msgspec.Struct):
    pass


class NatsNotices:
    """The port Notices on one stream. `wanted`: types of events on which something hangs."""

    def __init__(
        self, connection: Connection, stream: str, wanted: Collection[str], *, ack_wait_s: float = ACK_WAIT_S
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._ack_wait_s = ack_wait_s
        self._pulling: Puller | None = None
        self._next_pull = 0.0
        self._leader = LeaderReads(connection, stream)
        self._large = LargeFields(NatsObjects(connection))
        names = b"|".join(sorted(re.escape(name.encode()) for name in wanted))
        # A look at the raw block: most commits matter to nobody here, and parsing their headers would cost most.
        pattern = rb"\n%b:|\n%b:[^\r]*\b(?:%b)\b" % (PARENT.encode(), TYPES.encode(), names)
        self._matters = re.compile(pattern).search

    async def ensure_consumer(self, *, rewind: bool = False) -> None:
        """See Notices."""
        info = await self._connection.api(f"CONSUMER.INFO.{self._stream}.{CONSUMER}", None, _Any)
        if isinstance(info, ApiError):
            if info.err_code not in NO_CONSUMER:
                raise port_error(info, f"consumer {CONSUMER} of {self._stream}")
            config = {
                "durable_name": CONSUMER, "name": CONSUMER, "deliver_policy": "all", "replay_policy": "instant",
                "ack_policy": "explicit", "ack_wait": int(self._ack_wait_s * 1e9), "max_ack_pending": 20_000,
                "max_deliver": -1, "headers_only": True,
            }  # fmt: skip
            body = {"stream_name": self._stream, "config": config, "action": ""}
            await self._connection.ask(f"CONSUMER.CREATE.{self._stream}.{CONSUMER}", body, _Any)
        elif rewind:
            await self._connection.ask(f"CONSUMER.RESET.{self._stream}.{CONSUMER}", None, _Any)

    async def pull(self, batch: int, timeout_s: float) -> Sequence[Notice]:
        """See Notices."""
        if self._pulling is None:
            self._pulling = Puller(self._connection, self._stream, CONSUMER, self._ack_wait_s)
        puller = self._pulling
        now = asyncio.get_running_loop().time
        if (lull := self._next_pull - now()) > 0:
            await asyncio.sleep(lull)
        raws = await puller.pull(batch, timeout_s)
        if 0 < len(raws) < batch:
            self._next_pull = now() + LULL_S
        if puller.deleted:
            puller.forget()
            await self.ensure_consumer()
        matters = self._matters
        kept, others = [], []
        for raw in raws:
            if raw.headers is None or matters(raw.headers) is not None:
                kept.append(_notice(raw))
            else:
                others.append(raw.ack_subject)
        self._acknowledge(others)
        return kept

    async def read(self, notice: Notice) -> Record | None:
        """See Notices."""
        record = await self._leader.at(notice.sequence)
        return None if record is None else await self._large.whole(record)

    async def ack(self, notices: Sequence[Notice]) -> None:
        """See Notices."""
        self._acknowledge([n.handle for n in notices if isinstance(n.handle, bytes)])

    def _acknowledge(self, replies: Sequence[bytes]) -> None:
        if not replies:
            return
        try:
            self._connection.send(b"".join([publish_frame(reply, b"", b"+ACK") for reply in replies]))
        except PortUnavailable:
            return  # they are told again


def _notice(raw: Raw) -> Notice:
    sequence, _, _, stored_ns = ack_fields(raw.ack_subject)
    return Notice(raw.subject.decode(), sequence, parse_headers(raw.headers), stored_ns // 1_000_000, raw.ack_subject)
