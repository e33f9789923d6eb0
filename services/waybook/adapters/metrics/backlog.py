"""What waits in COMMANDS and lies in DEAD, read from JetStream only when somebody asks."""

import asyncio
import logging
from collections.abc import Iterable

import msgspec
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from waybook.adapters.metrics.cells import MOST_SERIES
from waybook.adapters.metrics.source import gauge
from waybook.adapters.nats.connection import Connection
from waybook.engine.ports import PortError, PortMisconfigured

log = logging.getLogger(__name__)

KEEP_S = 2.0
"""How long what was read counts as now: several readers cost the server no more than one."""

TIMEOUT_S = 1.0


class _Consumer(msgspec.Struct, frozen=True):
    name: str
    num_pending: int = 0
    num_ack_pending: int = 0


class _Page(msgspec.Struct, frozen=True):
    total: int = 0
    consumers: list[_Consumer] = []


class _State(msgspec.Struct, frozen=True):
    messages: int = 0


class _Info(msgspec.Struct, frozen=True):
    state: _State = _State()


class Backlog:
    """The consumers of COMMANDS, of all walkers and lanes, and the number of commands in DEAD."""

    def __init__(self, connection: Connection, *, commands: str = "COMMANDS", dead: str = "DEAD") -> None:
        self._connection = connection
        self._commands = commands
        self._dead = dead
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")
        self._known: tuple[list[_Consumer], int] | None = None

    async def families(self) -> Iterable[Metric]:
        """See Source; without an answer from JetStream nothing but that is told."""
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if now - self._read_at > KEEP_S:
                self._known = await self._read()
                self._read_at = asyncio.get_running_loop().time()
        answers = gauge("waybook_jetstream_answers", "1: JetStream told what waits.", self._known is not None)
        return [answers] if self._known is None else [answers, *_families(*self._known)]

    async def _read(self) -> tuple[list[_Consumer], int] | None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._consumers(), await self._buried()
        except (PortError, PortMisconfigured, TimeoutError) as error:
            log.info("what waits is unknown", extra={"action": "backlog_unknown", "error": str(error)})
            return None

    async def _consumers(self) -> list[_Consumer]:
        found: list[_Consumer] = []
        while len(found) < MOST_SERIES:
            page = await self._connection.ask(f"CONSUMER.LIST.{self._commands}", {"offset": len(found)}, _Page)
            found += page.consumers
            if not page.consumers or len(found) >= page.total:
                break
        return found

    async def _buried(self) -> int:
        info = await self._connection.ask(f"STREAM.INFO.{self._dead}", None, _Info)
        return info.state.messages


def _families(consumers: list[_Consumer], buried: int) -> list[Metric]:
    waiting = GaugeMetricFamily("waybook_commands_waiting", "Commands that nobody holds.", labels=("consumer",))
    held = GaugeMetricFamily("waybook_commands_held", "Commands that some walker holds.", labels=("consumer",))
    for consumer in consumers:
        waiting.add_metric((consumer.name,), consumer.num_pending)
        held.add_metric((consumer.name,), consumer.num_ack_pending)
    return [waiting, held, gauge("waybook_dead_letters_stored", "Commands in DEAD.", buried)]
