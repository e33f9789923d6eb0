"""The durable consumers of COMMANDS: their settings, making them, and when they were made."""

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.errors import NO_CONSUMER, ApiError, port_error
from waybook.adapters.nats.outcome import nanoseconds
from waybook.engine.ports import ConsumerSpec

ACK_WAIT_S = 60.0
MAX_ACK_PENDING = 20_000


class _Info(msgspec.Struct, frozen=True):
    created: str


class _Done(msgspec.Struct, frozen=True):
    success: bool = False


class Consumers:
    """Makes consumers of one stream and tells when they were made."""

    def __init__(self, connection: Connection, stream: str, ack_wait_s: float = ACK_WAIT_S) -> None:
        self._connection = connection
        self._stream = stream
        self._ack_wait_s = ack_wait_s
        self._specs: dict[str, ConsumerSpec] = {}

    async def ensure(self, specs: tuple[ConsumerSpec, ...], *, recreate: bool = False) -> None:
        """See CommandQueue.ensure_consumers."""
        for spec in specs:
            self._specs[spec.name] = spec
            if recreate:
                gone = await self._connection.api(f"CONSUMER.DELETE.{self._stream}.{spec.name}", None, _Done)
                if isinstance(gone, ApiError) and gone.err_code not in NO_CONSUMER:
                    raise port_error(gone, f"deleting consumer {spec.name}")
            await self._make(spec)

    async def created(self, name: str) -> int:
        """When the consumer was made, in ns since the epoch; makes one that was ensured before and is gone.

        Raises PortUnavailable, PortMisconfigured for a consumer that is missing and was never ensured here.
        """
        info = await self._connection.api(f"CONSUMER.INFO.{self._stream}.{name}", None, _Info)
        if isinstance(info, ApiError):
            if info.err_code in NO_CONSUMER and name in self._specs:
                return await self._make(self._specs[name])
            raise port_error(info, f"consumer {name} of {self._stream}")
        return nanoseconds(info.created)

    async def _make(self, spec: ConsumerSpec) -> int:
        config = {
            "durable_name": spec.name,
            "name": spec.name,
            "filter_subject": spec.filter,
            "deliver_policy": "all",
            "replay_policy": "instant",
            "ack_policy": "explicit",
            "ack_wait": int(self._ack_wait_s * 1e9),
            "max_ack_pending": MAX_ACK_PENDING,
            "max_deliver": -1,
        }
        subject = f"CONSUMER.CREATE.{self._stream}.{spec.name}.{spec.filter}"
        info = await self._connection.ask(subject, {"stream_name": self._stream, "config": config, "action": ""}, _Info)
        return nanoseconds(info.created)
