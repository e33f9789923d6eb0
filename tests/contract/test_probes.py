"""The probes that the design stands on, against the real server."""

from collections.abc import AsyncIterator

import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client

from waybook.adapters.nats.probes import PROBES, Probe, Seen, run_probe, run_probes
from waybook.adapters.nats.probes.bench import Bench
from waybook.adapters.nats.topology import Topology, apply, load_topology
from waybook.testing.servers import NatsUnderTest

TOPOLOGY = load_topology()


@pytest_asyncio.fixture
async def nc(clean_nats: NatsUnderTest) -> AsyncIterator[Client]:
    client = await nats.connect(clean_nats.url)
    await apply(client, TOPOLOGY)
    yield client
    await client.close()


def test_every_probe_that_the_design_names_is_there() -> None:
    """None is forgotten, none appears twice."""
    assert [probe.id for probe in PROBES] == [
        "J0.3", "J0.7", "J0.9", "P5", "P6", "P9", "P10", "P11", "P12", "P15", "P16",
    ]  # fmt: skip


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.id)
async def test_the_server_answers_as_expected(nc: Client, probe: Probe) -> None:
    """Each rule's ground holds on the server that is installed."""
    result = await run_probe(nc, TOPOLOGY, probe)
    assert result.seen == result.expected and result.ok


async def test_a_deviation_is_reported(nc: Client) -> None:
    """An answer other than the expected one is not ok, and neither is a server that does not say what was asked."""

    async def odd(bench: Bench) -> Seen:
        return Seen("something else")

    async def silent(bench: Bench) -> Seen:
        return Seen(str((await bench.api("STREAM.INFO.NONE"))["state"]))

    results = [await run_probe(nc, TOPOLOGY, Probe("T1", "?", "this", run)) for run in (odd, silent)]
    assert [result.ok for result in results] == [False, False]
    assert results[1].seen.startswith("no usable answer: KeyError")


async def test_probes_run_on_a_server_of_their_own(clean_nats: NatsUnderTest) -> None:
    """Nothing is made on the user's server."""
    chosen = [probe for probe in PROBES if probe.id in ("J0.3", "P15")]
    assert [result.ok async for result in run_probes(TOPOLOGY, chosen)] == [True, True]
    client = await nats.connect(clean_nats.url)
    assert await client.jetstream().streams_info() == []
    await client.close()


async def test_a_topology_for_a_cluster_is_probed_on_one_server() -> None:
    """A file that declares three replicas can be probed without a cluster."""
    three: Topology = TOPOLOGY.with_parameters(replicas=3)
    assert [result.ok async for result in run_probes(three, PROBES[:1])] == [True]
