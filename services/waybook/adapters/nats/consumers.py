"""The durable consumers of COMMANDS: making them, and when they were made."""

import asyncio

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.errors import CONSUMER_NOT_MADE, NO_CONSUMER, ApiError, port_error
from waybook.adapters.nats.outcome import nanoseconds
from waybook.engine.ports import ConsumerSpec

ACK_WAIT_S = 60.0
MAX_ACK_PENDING = 20_000


LOOKS = 4
MADE_AGAIN = 5
"""How often a consumer is asked for again while the server still removes the files of one with its name."""

LOOK_S = 0.1  # between two pulls of a worker nobody waits for a moment


class _Info(msgspec.Struct, frozen=True):
    created: str
    config: dict[str, object] = {}
    num_waiting: int = 0
    num_ack_pending: int = 0


class _Done(msgspec.Struct, frozen=True):
    success: bool = False


class Consumers:
    """Makes consumers of one stream and tells when they were made.

    A consumer that is there keeps its settings, but for the filter and ack_wait, also when it is made anew.
    """

    def __init__(self, connection: Connection, stream: str, ack_wait_s: float = ACK_WAIT_S) -> None:
        self._connection = connection
        self._stream = stream
        self._ack_wait_s = ack_wait_s
        self._ensured: dict[str, dict[str, object]] = {}  # settings by name

    async def ensure(self, specs: tuple[ConsumerSpec, ...], *, recreate: bool = False) -> None:
        """See CommandQueue.ensure_consumers."""
        for spec in specs:
            stored = await self._stored(spec.name)
            wanted = self._settings(spec, self._settings_of(stored))
            self._ensured[spec.name] = wanted
            if recreate and stored is not None:
                await self._connection.ask(f"CONSUMER.DELETE.{self._stream}.{spec.name}", None, _Done)
                stored = None
            if stored is None or wanted != self._settings_of(stored):
                await self._make(wanted)

    async def created(self, name: str) -> int:
        """When the consumer was made, in ns since the epoch; makes one that was ensured before and is gone.

        Raises PortUnavailable, PortMisconfigured for a consumer that is missing and was never ensured here.
        """
        stored = await self._stored(name)
        if stored is not None:
            return nanoseconds(stored.created)
        if name in self._ensured:
            return await self._make(self._ensured[name])
        raise port_error(ApiError(404, 10014, "consumer not found"), f"pull from {name} of {self._stream}")

    async def is_taken(self, name: str) -> bool:
        """See CommandQueue.is_taken."""
        for look in range(LOOKS):
            if look:
                await asyncio.sleep(LOOK_S)
            stored = await self._stored(name)
            if stored is None:
                return False
            if stored.num_waiting or stored.num_ack_pending:
                return True
        return False

    async def _stored(self, name: str) -> _Info | None:
        info = await self._connection.api(f"CONSUMER.INFO.{self._stream}.{name}", None, _Info)
        if not isinstance(info, ApiError):
            return info
        if info.err_code in NO_CONSUMER:
            return None
        raise port_error(info, f"consumer {name} of {self._stream}")

    @staticmethod
    def _settings_of(stored: _Info | None) -> dict[str, object]:
        """What is stored, without what the server notes down by itself."""
        if stored is None:
            return {}
        metadata = stored.config.get("metadata")
        own = {k: v for k, v in metadata.items() if not k.startswith("_nats.")} if isinstance(metadata, dict) else {}
        rest = {name: value for name, value in stored.config.items() if name != "metadata"}
        return {**rest, "metadata": own} if own else rest

    def _settings(self, spec: ConsumerSpec, kept: dict[str, object]) -> dict[str, object]:
        defaults: dict[str, object] = {
            "deliver_policy": "all",
            "replay_policy": "instant",
            "ack_policy": "explicit",
            "max_ack_pending": MAX_ACK_PENDING,
            "max_deliver": -1,
        }
        own: dict[str, object] = {
            "durable_name": spec.name,
            "name": spec.name,
            "filter_subject": spec.filter,
            "ack_wait": int(self._ack_wait_s * 1e9),
        }
        if spec.idle_s is not None:
            own["inactive_threshold"] = int(spec.idle_s * 1e9)
        return {**defaults, **kept, **own}

    async def _make(self, config: dict[str, object]) -> int:
        subject = f"CONSUMER.CREATE.{self._stream}.{config['name']}.{config['filter_subject']}"
        request = {"stream_name": self._stream, "config": config, "action": ""}
        info = await self._connection.api(subject, request, _Info)
        for _ in range(MADE_AGAIN):
            if not (isinstance(info, ApiError) and info.err_code == CONSUMER_NOT_MADE):
                break
            await asyncio.sleep(LOOK_S)
            info = await self._connection.api(subject, request, _Info)
        if isinstance(info, ApiError):
            raise port_error(info, subject)
        return nanoseconds(info.created)
