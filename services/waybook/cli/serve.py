"""`waybook serve SERVICE`: one service of a deployment, on servers that are there already."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from typing import Annotated

import typer

from waybook.adapters.metrics.listening import address, library_is_here, listening
from waybook.cli.output import fail, out
from waybook.cli.running import run_async
from waybook.events.errors import InvalidInput, WaybookError
from waybook.projections.__main__ import main as run_projector
from waybook.services.bootstrap.agent_job import own_agents
from waybook.services.bootstrap.installation import deployed
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.mail_walker import walking_mails
from waybook.services.bootstrap.model_choice import choices
from waybook.services.bootstrap.observing import ANY_PORT, NOWHERE, observed, scheduler_observed
from waybook.services.bootstrap.runtime import settle_memory
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.bootstrap.settings import Settings

serve_app = typer.Typer(
    no_args_is_help=True, help="One service of a deployment, on the servers that WAYBOOK_NATS_URL and the like name."
)

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="N",
        help="Answer /metrics on this port; 0: a free one, -1: none [env: WAYBOOK_METRICS_PORT].",
        show_default=False,
    ),
]


@serve_app.command("walker")
def walker_command(metrics_port: MetricsPort = None) -> None:
    """Walk runs: take commands, run steps, append commits. Streams are made by `waybook streams apply` before.

    With WAYBOOK_DATABASE_URL steps also see a sender's earlier mails.
    """
    settle_memory()
    run_async(_walk(Settings.load().with_metrics_port(metrics_port)))


async def _walk(settings: Settings) -> None:
    choices(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        observing = stack.enter_context(
            observed(settings, [mail_agent(settings)[0]], otherwise=ANY_PORT, projector=False)
        )
        installation = await stack.enter_async_context(deployed(settings, "serve walker", observing.hook))
        await stack.enter_async_context(walking_mails(installation, observing))
        for where in observing.addresses.values():
            out.print(f"metrics  {where}")
        out.print("walking; Ctrl-C stops")
        await stop.wait()
        out.print("stopping")


@serve_app.command("scheduler")
def scheduler_command(metrics_port: MetricsPort = None) -> None:
    """Turn commits into timers and follow-up commands, and fired timers into commands. Any number may run.

    With WAYBOOK_DATABASE_URL it also finds timers that were lost, and runs that stand still without a reason.
    """
    run_async(_schedule(Settings.load().with_metrics_port(metrics_port)))


async def _schedule(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        observing = stack.enter_context(scheduler_observed(settings))
        installation = await stack.enter_async_context(deployed(settings, "serve scheduler"))
        agents = [mail_agent(settings)[0], *own_agents(settings)]
        scheduler = await stack.enter_async_context(scheduling(installation, agents, observing.hook))
        await stack.enter_async_context(observing.serving(scheduler))
        if observing.address is not None:
            out.print(f"metrics  {observing.address}")
        out.print("scheduling; Ctrl-C stops")
        await stop.wait()
        out.print("stopping")


@serve_app.command("projector")
def projector_command(metrics_port: MetricsPort = None) -> None:
    """Keep the read models in PostgreSQL. Any number may run; one is active."""
    try:
        raise typer.Exit(_project(Settings.load().with_metrics_port(metrics_port)))
    except InvalidInput as error:
        fail(str(error), 2)
    except WaybookError as error:
        fail(str(error))


def _project(settings: Settings) -> int:
    missing = [name for name in ("nats_url", "database_url") if getattr(settings, name) is None]
    if missing:
        names = " and ".join(f"WAYBOOK_{name.upper()}" for name in missing)
        raise InvalidInput(f"a projector of its own needs {names}; `waybook up` brings its own servers")
    given = {
        "--nats-url": settings.nats_url or "",
        "--database-url": settings.database_url or "",
        "--nats-inbox-prefix": settings.nats_inbox_prefix,
        "--metrics-port": str(NOWHERE),
    }
    port = settings.metrics_port
    if port is None:
        port = ANY_PORT if library_is_here() else NOWHERE
    words = [f"{name}={value}" for name, value in given.items()]
    if port == NOWHERE:
        return run_projector(words)
    with listening(port, settings.metrics_host) as opened:
        out.print(f"metrics  {address(opened)}")
        return run_projector([*words, f"--metrics-fd={os.dup(opened.fileno())}"])
