"""COMMANDS on JetStream: a work queue whose deliveries are leases."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from waybook.adapters.nats.bulk_ack import BulkAcks
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.consumers import ACK_WAIT_S, Consumers
from waybook.adapters.nats.delivery import NatsDelivery, ack_fields
from waybook.adapters.nats.outcome import LeaderReads
from waybook.adapters.nats.publishing import Publisher
from waybook.adapters.nats.pull import Puller, Raw
from waybook.engine.ports import ConsumerSpec, Outgoing
from waybook.events.engine import Claim

log = logging.getLogger(__name__)

STREAM = "COMMANDS"


class NatsCommandQueue:
    """The port CommandQueue. `ack_wait_s` is the lease of its consumers, in seconds.

    Consumers that it makes anew are its own: nobody else pulls from them. Their commands are acknowledged in bulk
    (`BulkAcks`), and as long as their deliveries are numbered without a gap they are known to be theirs.
    """

    def __init__(self, connection: Connection, *, stream: str = STREAM, ack_wait_s: float = ACK_WAIT_S) -> None:
        self._connection = connection
        self._stream = stream
        self.ack_wait_s = ack_wait_s
        self._consumers = Consumers(connection, stream, ack_wait_s)
        self._publisher = Publisher(connection, stream)
        self._leader = LeaderReads(connection, stream)
        self._pullers: dict[str, tuple[Puller, asyncio.Lock]] = {}
        self._created: dict[str, int] = {}
        self._own: dict[str, BulkAcks] = {}  # of consumers made anew here

    async def ensure_consumers(self, specs: Sequence[ConsumerSpec], *, recreate: bool = False) -> None:
        """See CommandQueue."""
        await self._consumers.ensure(tuple(specs), recreate=recreate)
        for spec in specs if recreate else ():
            self._created.pop(spec.name, None)
            if spec.name in self._own:
                self._own[spec.name].lose()
            self._own[spec.name] = BulkAcks(self._connection, self._stream, spec.filter, self.ack_wait_s)
            if spec.name in self._pullers:
                self._pullers[spec.name][0].forget()

    async def publish(
        self, subject: str, payload: bytes, *, command: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        """See CommandQueue."""
        return await self._publisher.publish(Outgoing(subject, payload, command, headers or {}))

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[bool]:
        """See CommandQueue."""
        return await self._publisher.publish_many(messages)

    async def pull(self, consumer: str, batch: int, timeout_s: float) -> Sequence[NatsDelivery]:
        """See CommandQueue. Also raises PortMisconfigured for a consumer that is missing and was not ensured here."""
        puller, turn = self._puller(consumer)
        own = self._own.get(consumer)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        async with turn:
            while True:
                known = self._created.get(consumer)
                created = known or await self._consumers.created(consumer)
                self._created[consumer] = created
                raws = await puller.pull(batch, max(0.0, deadline - loop.time()))
                if not raws and not puller.deleted:
                    return []
                fields = [ack_fields(raw.ack_subject) for raw in raws]
                # Deliveries do not name the consumer's creation; the same before and after is theirs.
                is_own = bool(known) and own is not None and own.goes_on([number for _, _, number, _ in fields])
                try:
                    same = not puller.deleted and (is_own or await self._consumers.created(consumer) == created)
                except BaseException:  # the server did not say, or the caller was cancelled: the next pull gets them
                    puller.put_back(raws)
                    raise
                if same:
                    pairs = zip(raws, fields, strict=True)
                    return [self._delivery(raw, created, told, own) for raw, told in pairs]
                self._consumer_was_replaced(consumer, puller, len(raws))

    def _consumer_was_replaced(self, consumer: str, puller: Puller, dropped: int) -> None:
        """Which consumer made the deliveries cannot be told, so neither can their claims: they come again."""
        log.warning(
            "a consumer was made anew, its deliveries are dropped and come again",
            extra={"action": "consumer_replaced", "consumer": consumer, "dropped": dropped},
        )
        self._created.pop(consumer, None)
        if consumer in self._own:
            self._own[consumer].lose()
        puller.forget()

    async def give_back(self) -> int:
        """For the end: what cancelled pulls were sent and nobody was handed goes to others at once; how many.

        What is done is acknowledged at once.
        """
        for own in self._own.values():
            own.flush()
        count = 0
        for name, (puller, _) in self._pullers.items():
            for raw in puller.leftovers():
                await self._delivery(raw, self._created.get(name, 0), ack_fields(raw.ack_subject)).nak()
                count += 1
        return count

    async def holds(self, sequence: int) -> bool:
        """See CommandQueue."""
        return await self._leader.at(sequence) is not None

    async def is_taken(self, consumer: str) -> bool:
        """See CommandQueue."""
        return await self._consumers.is_taken(consumer)

    def _puller(self, consumer: str) -> tuple[Puller, asyncio.Lock]:
        known = self._pullers.get(consumer)
        if known is None:
            known = (Puller(self._connection, self._stream, consumer, self.ack_wait_s), asyncio.Lock())
            self._pullers[consumer] = known
        return known

    def _delivery(
        self, raw: Raw, created: int, told: tuple[int, int, int, int], own: BulkAcks | None = None
    ) -> NatsDelivery:
        sequence, delivered, number, stored_ns = told
        if own is not None:
            own.delivered(number, sequence)
        return NatsDelivery(
            self._connection,
            raw.subject.decode(),
            raw.ack_subject.decode(),
            Claim(sequence, created, delivered),
            stored_ns // 1_000_000,
            raw.payload,
            raw.headers,
            own,
        )
