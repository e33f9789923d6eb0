"""Makes sure, before a role starts, that the server stores what the design stands on."""

import nats
from nats.errors import Error as NatsError

from waybook.adapters.embedded.given import without_password
from waybook.adapters.nats.topology import Topology, apply, check, load_topology
from waybook.engine.ports import PortMisconfigured, PortUnavailable


async def ensure_topology(
    nats_url: str,
    *,
    monitor_url: str | None = None,
    ack_wait_ms: int | None = None,
    make: bool = True,
    inbox_prefix: str = "_INBOX",
) -> Topology:
    """Creates what is missing, then refuses to start on a difference that breaks an invariant.

    `make=False` only looks, for a user who may not change streams. Raises PortUnavailable, PortMisconfigured naming the differences, NeedsPerson.
    """
    topology = load_topology()
    if ack_wait_ms is not None:
        topology = topology.with_parameters(ack_wait_ms=ack_wait_ms)
    try:
        nc = await nats.connect(
            nats_url.split(","), max_reconnect_attempts=1, connect_timeout=5, inbox_prefix=inbox_prefix
        )
    except (NatsError, OSError, TimeoutError) as error:
        place = without_password(nats_url)
        if "authorization" in str(error).lower():
            raise PortMisconfigured(f"the nats-server at {place} refuses the credentials") from error
        raise PortUnavailable(f"no nats-server answers at {place}: {error}") from error
    try:
        if make:
            await apply(nc, topology)
        report = await check(nc, topology, monitor_url)
    finally:
        await nc.close()
    refusal = report.refusal()
    if refusal is not None:
        raise PortMisconfigured(f"the server differs from streams.yaml in what invariants need:\n{refusal}")
    return topology
