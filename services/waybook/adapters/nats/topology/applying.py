"""Makes a server store what is declared."""

import asyncio
import logging

from nats.aio.client import Client

from waybook.adapters.nats.topology.declaration import Topology
from waybook.adapters.nats.topology.errors import NeedsPerson
from waybook.adapters.nats.topology.planning import Change, Plan, plan
from waybook.adapters.nats.topology.server import put_consumer, put_stream

_log = logging.getLogger(__name__)


async def apply(nc: Client, topology: Topology) -> Plan:
    """Creates what is missing, updates what differs, and returns what was done; a second call does nothing.

    Raises NeedsPerson, before anything is changed, when a difference cannot be changed without risk;
    PortMisconfigured when the server is too old or refuses; PortUnavailable when it does not answer (call again).
    The server may store less than it was told: `check` compares.
    """
    done = await plan(nc, topology)
    if blocked := done.of("person"):
        raise NeedsPerson("\n".join(_explain(change) for change in blocked))
    changes = [change for change in done.changes if change.action != "same"]
    await asyncio.gather(*(_put(nc, change) for change in changes if change.consumer is None))
    await asyncio.gather(*(_put(nc, change) for change in changes if change.consumer is not None))
    for change in changes:
        fields = [difference.field for difference in change.differences]
        _log.info(
            "%s %s",
            change.action,
            change.name,
            extra={"action": "topology_applied", "topology": change.name, "fields": fields},
        )
    return done


async def _put(nc: Client, change: Change) -> None:
    exists = change.action == "update"
    if change.consumer is None:
        await put_stream(nc, change.name, change.wanted, exists=exists)
    else:
        await put_consumer(nc, *change.consumer, change.wanted, exists=exists)


def _explain(change: Change) -> str:
    return f"{change.name}: {'; '.join(str(d) for d in change.differences)}. {change.advice}"
