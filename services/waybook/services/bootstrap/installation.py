"""An installation, opened: as its owner with everything running, or for a look."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from waybook.adapters.embedded import Addresses, Servers, servers_for_reading
from waybook.adapters.embedded.given import check_nats
from waybook.adapters.nats.command_queue import STREAM as COMMANDS
from waybook.agents.definition import AgentDefinition
from waybook.agents.effects import EffectAdapter
from waybook.engine.hooks import Hook, ignore
from waybook.engine.ports import ANY_LANE, PortMisconfigured
from waybook.events.subjects import state_stream
from waybook.services.bootstrap.beside import beside
from waybook.services.bootstrap.effect_settings import effect_adapters
from waybook.services.bootstrap.observing import UNOBSERVED, Observing
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import Wiring, walker_ports, wired
from waybook.services.projector.child import projector_child
from waybook.services.walker.definitions import lanes
from waybook.services.walker.walker import Walker, WalkerOptions


class Installation(msgspec.Struct, frozen=True):
    """Addresses and ports. `exclusive`: this process owns the data directory and its nats-server alone."""

    settings: Settings
    addresses: Addresses
    wiring: Wiring
    exclusive: bool

    @property
    def database_url(self) -> str:
        """Where the read models are. Raises PortMisconfigured when there is no database."""
        if self.addresses.database_url is None:
            raise PortMisconfigured(
                "this needs the read models, and beside WAYBOOK_NATS_URL no PostgreSQL is named: set WAYBOOK_DATABASE_URL"
            )
        return self.addresses.database_url


@asynccontextmanager
async def owned(
    settings: Settings, role: str, data_dir: Path | None = None, hook: Hook = ignore
) -> AsyncIterator[Installation]:
    """As the owner (`run`, `up`): servers started, topology made and checked. `hook` is told what happens.

    Raises DataDirectoryInUse, ServerStartFailed and the like (`waybook.adapters.embedded`), PortError,
    PortMisconfigured.
    """
    servers = Servers(settings.directory(data_dir), role, settings.given)
    async with servers as addresses:
        ack_wait_ms = round(settings.ack_wait_s * 1000)
        prefix = settings.nats_inbox_prefix
        await ensure_topology(
            addresses.nats_url,
            monitor_url=addresses.nats_monitor_url,
            ack_wait_ms=ack_wait_ms,
            inbox_prefix=prefix,
        )
        if servers.nats is not None:
            servers.nats.stage_batches_in_memory((state_stream(), COMMANDS))
        async with wired(
            addresses.nats_url,
            name=f"waybook-{role}",
            ack_wait_s=settings.ack_wait_s,
            inbox_prefix=prefix,
            hook=hook,
        ) as wiring:
            yield Installation(settings, addresses, wiring, settings.nats_url is None)


@asynccontextmanager
async def deployed(settings: Settings, role: str, hook: Hook = ignore) -> AsyncIterator[Installation]:
    """As one service of a deployment (`serve`): nothing is embedded, and no stream is made or changed.

    Raises PortMisconfigured when no nats-server is named, or its streams are not those of `waybook streams apply`;
    ServerUnreachable, ServerTooOld, ServerUnsuitable.
    """
    url, prefix = settings.nats_url, settings.nats_inbox_prefix
    if url is None:
        raise PortMisconfigured("a service of its own needs WAYBOOK_NATS_URL; `waybook up` brings its own servers")
    await check_nats(url)
    ack_wait_ms = round(settings.ack_wait_s * 1000)
    await ensure_topology(
        url, monitor_url=settings.nats_monitor_url, ack_wait_ms=ack_wait_ms, make=False, inbox_prefix=prefix
    )
    addresses = Addresses(url, settings.nats_monitor_url, settings.database_url)
    async with wired(
        url, name=f"waybook-{role}", ack_wait_s=settings.ack_wait_s, inbox_prefix=prefix, hook=hook
    ) as wiring:
        yield Installation(settings, addresses, wiring, False)


@asynccontextmanager
async def looked_at(settings: Settings, role: str, data_dir: Path | None = None) -> AsyncIterator[Installation]:
    """For a command that only reads: beside a running owner, or with servers for its own duration."""
    async with servers_for_reading(settings.directory(data_dir), role, settings.given) as addresses:
        async with wired(addresses.nats_url, name=f"waybook-{role}", inbox_prefix=settings.nats_inbox_prefix) as wiring:
            yield Installation(settings, addresses, wiring, False)


@asynccontextmanager
async def walking(
    installation: Installation,
    agents: Sequence[AgentDefinition],
    provides: dict[type, Any],
    *,
    older: Sequence[AgentDefinition] = (),
    effects: Mapping[str, EffectAdapter] | None = None,
    name: str = "walker",
) -> AsyncIterator[Walker]:
    """A walker at work for the time of the block; a graceful stop at its end.

    `older` definitions of the agents continue the runs that began under them. `effects` are the adapters of side effects
    by name; None: those of the settings. Raises what broke the walker; the block
    is cancelled at that moment.
    """
    settings = installation.settings
    own = lanes((*agents, *older))
    holder: list[Walker] = []
    async with AsyncExitStack() as stack:
        ports = await stack.enter_async_context(
            walker_ports(
                installation.wiring,
                installation.addresses.nats_url,
                ack_wait_s=settings.ack_wait_s,
                exclusive=installation.exclusive,
                on_lost=lambda: holder[0].claims_lost() if holder else None,
                consumers=(*ANY_LANE, *own),
            )
        )
        options = WalkerOptions(
            name=name,
            slots=settings.slots,
            lane_consumers=tuple(spec.name for spec in own),
            executions=settings.executions,
            arrivals=settings.intake.rate,
        )
        hook = installation.wiring.hook
        if effects is None:
            effects = effect_adapters(settings.effects, installation.wiring.objects)
        walker = Walker(agents, ports, older=older, provides=provides, effects=effects, options=options, hook=hook)
        holder.append(walker)
        async with beside(walker.run()):
            try:
                yield walker
            finally:
                await walker.stop()


@asynccontextmanager
async def projecting(installation: Installation, observing: Observing = UNOBSERVED) -> AsyncIterator[None]:
    """The projector as a child process for the time of the block."""
    async with projector_child(
        installation.addresses.nats_url,
        installation.database_url,
        inbox_prefix=installation.settings.nats_inbox_prefix,
        metrics=observing.projector_socket,
    ):
        yield
