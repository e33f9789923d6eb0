"""The consumers by which the read models are fed, and how each is set to a sequence."""

from typing import Any, Protocol

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.errors import NO_CONSUMER, ApiError, port_error

DURABLE = "projections"
ACK_WAIT_S = 60
MAX_ACK_PENDING = 20_000


class _Answer(msgspec.Struct, frozen=True):
    pass


class Consumer(Protocol):
    """A pull consumer of a stream. `acks`: whether it wants to be told how far the reader is."""

    @property
    def name(self) -> str: ...
    @property
    def acks(self) -> bool: ...

    async def place(self, connection: Connection, sequence: int) -> None:
        """Makes the consumer, if it is missing, and lets it deliver from `sequence` on.

        Raises PortUnavailable, PortMisconfigured.
        """
        ...


class DurableConsumer(msgspec.Struct, frozen=True):
    """The live reader's: unfiltered, as `streams.yaml` declares it. Its acks let people see how far the reader is."""

    stream: str
    name: str = DURABLE
    acks: bool = True

    async def place(self, connection: Connection, sequence: int) -> None:
        """See Consumer. Its own position does not matter; the reset takes back what a dead reader had taken."""
        info = await connection.api(f"CONSUMER.INFO.{self.stream}.{self.name}", None, _Answer)
        if isinstance(info, ApiError):
            if info.err_code not in NO_CONSUMER:
                raise port_error(info, f"consumer {self.name}")
            await _create(connection, self.stream, self.name, self._config())
        # Asked for only now: the server does not answer the reset of a consumer that is missing.
        await connection.ask(f"CONSUMER.RESET.{self.stream}.{self.name}", {"seq": sequence}, _Answer)

    def _config(self) -> dict[str, Any]:
        return {
            "durable_name": self.name,
            "description": "Read models, one active reader",
            "deliver_policy": "all",
            "ack_policy": "all",
            "ack_wait": ACK_WAIT_S * 1_000_000_000,
            "max_ack_pending": MAX_ACK_PENDING,
            "max_deliver": -1,
        }


class PassingConsumer(msgspec.Struct, frozen=True):
    """A rebuild's or a verification's: without acks, gone by itself a minute after its reader."""

    stream: str
    name: str
    acks: bool = False

    async def place(self, connection: Connection, sequence: int) -> None:
        """See Consumer. It is made anew each time."""
        await self.remove(connection)
        config = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": sequence,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": 60 * 1_000_000_000,
        }
        await _create(connection, self.stream, self.name, config)

    async def remove(self, connection: Connection) -> None:
        """Deletes it, if it is there."""
        answer = await connection.api(f"CONSUMER.DELETE.{self.stream}.{self.name}", None, _Answer)
        if isinstance(answer, ApiError) and answer.err_code not in NO_CONSUMER:
            raise port_error(answer, f"deletion of consumer {self.name}")


async def _create(connection: Connection, stream: str, name: str, config: dict[str, Any]) -> None:
    body = {"stream_name": stream, "config": {"name": name, "replay_policy": "instant", **config}, "action": ""}
    await connection.ask(f"CONSUMER.CREATE.{stream}.{name}", body, _Answer)
