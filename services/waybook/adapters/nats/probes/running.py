"""Runs the probes against a server of their own, never against a user's."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import nats
import nats.errors
from nats.aio.client import Client

from waybook.adapters.embedded.nats_server import NatsServer
from waybook.adapters.nats.probes import appends, batches, histories, queue, settings, timers
from waybook.adapters.nats.probes.bench import Bench
from waybook.adapters.nats.probes.probe import Probe, ProbeResult, Seen
from waybook.adapters.nats.topology import Topology, apply
from waybook.adapters.nats.topology.declaration import STATE_PREFIX

PROBES: Sequence[Probe] = sorted(
    (*appends.PROBES, *batches.PROBES, *histories.PROBES, *queue.PROBES, *settings.PROBES, *timers.PROBES),
    key=lambda probe: (probe.id[0], float(probe.id.lstrip("JP"))),
)


async def run_probes(topology: Topology, probes: Sequence[Probe] = PROBES) -> AsyncIterator[ProbeResult]:
    """Starts a nats-server in a temporary folder, makes `topology` on it, and yields each result as it comes.

    One replica, sync always. Raises ServerStartFailed or ProgramMissing when no server can be started.
    """
    with tempfile.TemporaryDirectory(prefix="waybook-probe-") as folder:
        server = NatsServer(Path(folder) / "nats")
        await server.start()
        try:
            nc = await nats.connect(server.url, allow_reconnect=False)
            try:
                await apply(nc, topology.with_parameters(replicas=1))
                for probe in probes:
                    yield await run_probe(nc, topology, probe)
            finally:
                await nc.close()
        finally:
            await server.stop()


async def run_probe(nc: Client, topology: Topology, probe: Probe) -> ProbeResult:
    """One probe on a server where `topology` was made. A server that does not answer is a deviation."""
    state = next(name for name in topology.streams if name.startswith(STATE_PREFIX))
    try:
        seen = await probe.run(Bench(nc, probe.id, state))
    except (nats.errors.Error, KeyError) as error:  # no answer, or an answer without what was asked for
        seen = Seen(f"no usable answer: {error!r}")
    ok = seen.answer == probe.expected
    return ProbeResult(probe.id, probe.question, probe.expected, seen.answer, ok, seen.note)
