"""`waybook streams plan|apply|check`: what `streams.yaml` declares against what a server stores."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from nats.aio.client import Client

from waybook.adapters.embedded.data_directory import Addresses
from waybook.adapters.nats.probes import PROBES, ProbeResult, run_probes
from waybook.adapters.nats.topology import Plan, Report, Topology, apply, check, load_topology, plan
from waybook.cli import streams_view as view
from waybook.cli.nats_connection import Target, connected, nats_addresses
from waybook.cli.running import run_async
from waybook.services.bootstrap.settings import Settings

streams_app = typer.Typer(no_args_is_help=True, help="Streams, consumers and buckets on the NATS server.")

File = Annotated[
    Path | None, typer.Option("--file", help="Another topology file than the one that comes with Waybook.")
]
NatsUrl = Annotated[
    str | None, typer.Option(help="A real server (WAYBOOK_NATS_URL); by default the data directory's own.")
]
MonitorUrl = Annotated[
    str | None, typer.Option(help="Its monitoring address (WAYBOOK_NATS_MONITOR_URL); several of a cluster by commas.")
]
DataDir = Annotated[Path | None, typer.Option(help="The data directory (WAYBOOK_DATA_DIR), where no server is given.")]
Replicas = Annotated[int | None, typer.Option(min=1, max=5, help="Copies of every stream; 3 in production.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


class _Choice(msgspec.Struct, frozen=True):
    """The options of a command; read inside the running command, where mistakes become sentences."""

    file: Path | None
    replicas: int | None
    nats_url: str | None
    monitor_url: str | None
    data_dir: Path | None

    def topology(self) -> Topology:
        """The declared one. A lease that is configured outside the file wins over the file's."""
        lease_s = Settings.load().ack_wait_s
        ack_wait_ms = None if lease_s == Settings().ack_wait_s else round(lease_s * 1_000)
        return load_topology(self.file).with_parameters(replicas=self.replicas, ack_wait_ms=ack_wait_ms)

    @asynccontextmanager
    async def connected(self, role: str) -> AsyncIterator[tuple[Addresses, Client]]:
        """The server to work with, and a connection to it, for the time of the block."""
        target = Target.chosen(self.nats_url, self.monitor_url, self.data_dir)
        async with nats_addresses(target, role) as addresses, connected(addresses, target.inbox_prefix) as client:
            yield addresses, client


@streams_app.command("plan")
def plan_command(
    file: File = None, nats_url: NatsUrl = None, data_dir: DataDir = None, replicas: Replicas = None, json: Json = False
) -> None:
    """Shows what `apply` would do. Exit code 1 when a difference needs a person."""
    result = run_async(_plan(_Choice(file, replicas, nats_url, None, data_dir)))
    view.show_plan(result, json=json, done=False)
    _end(ok=not result.of("person"))


@streams_app.command("apply")
def apply_command(
    file: File = None, nats_url: NatsUrl = None, data_dir: DataDir = None, replicas: Replicas = None, json: Json = False
) -> None:
    """Creates what is missing and updates what differs; a second time does nothing.

    Exit code 1, with nothing done, when a difference needs a person; and when the server stores less than it was told.
    """
    result, left = run_async(_apply(_Choice(file, replicas, nats_url, None, data_dir)))
    view.show_plan(result, json=json, done=True, left=left.breaking)
    _end(ok=left.refusal() is None)


@streams_app.command("check")
def check_command(
    file: File = None,
    nats_url: NatsUrl = None,
    monitor_url: MonitorUrl = None,
    data_dir: DataDir = None,
    replicas: Replicas = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Instead: ask a nats-server of its own what the design stands on.")
    ] = False,
    json: Json = False,
) -> None:
    """Compares what the server stores with what is declared, and proves that it syncs before it acknowledges.

    Exit code 1 on a difference that breaks an invariant, when the server does not sync always, and when that is
    unproven for want of a monitoring address.
    """
    choice = _Choice(file, replicas, nats_url, monitor_url, data_dir)
    if probe:
        results = run_async(_probe(choice, quiet=json))
        view.show_probes(results, json=json)
        _end(ok=all(result.ok for result in results))
    else:
        report = run_async(_check(choice))
        view.show_report(report, json=json)
        _end(ok=report.ok)


def _end(*, ok: bool) -> None:
    if not ok:
        raise typer.Exit(1)


async def _plan(choice: _Choice) -> Plan:
    topology = choice.topology()
    async with choice.connected("streams plan") as (_, nc):
        return await plan(nc, topology)


async def _apply(choice: _Choice) -> tuple[Plan, Report]:
    topology = choice.topology()
    async with choice.connected("streams apply") as (_, nc):
        return await apply(nc, topology), await check(nc, topology)


async def _check(choice: _Choice) -> Report:
    topology = choice.topology()
    async with choice.connected("streams check") as (addresses, nc):
        return await check(nc, topology, addresses.nats_monitor_url)


async def _probe(choice: _Choice, *, quiet: bool) -> list[ProbeResult]:
    results = []
    with view.progress(len(PROBES), "probing", quiet=quiet) as advance:
        async for result in run_probes(choice.topology()):
            results.append(result)
            advance(result.id)
    return results
