"""`python -m waybook.projections`: the projector as a process of its own, mostly a child of `waybook up` and `run`.

Ends with 0 after SIGTERM, SIGINT or the death of its parent, with 1 when the projection cannot go on, with 2 on
wrong options. It waits for ever for NATS and PostgreSQL.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from waybook.adapters.metrics.listening import LOOPBACK
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.settings import NatsSettings
from waybook.engine.ports import PortUnavailable
from waybook.events.errors import TerminalError
from waybook.events.subjects import state_stream
from waybook.projections.observing import Observed, observed
from waybook.projections.projector import Projector, ProjectorSettings
from waybook.projections.read_models import FRONT

log = logging.getLogger("waybook.projections")

PARENT_LOOK_S = 0.5
NATS_WAIT_S = 1.0


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The options; what is not given comes from WAYBOOK_NATS_URL and the like."""
    parser = argparse.ArgumentParser(prog="python -m waybook.projections", description="Keeps the read models.")
    parser.add_argument("--nats-url", default=os.environ.get("WAYBOOK_NATS_URL"), help="comma separated")
    parser.add_argument("--database-url", default=os.environ.get("WAYBOOK_DATABASE_URL"))
    parser.add_argument("--nats-inbox-prefix", default=os.environ.get("WAYBOOK_NATS_INBOX_PREFIX") or "_INBOX")
    parser.add_argument("--metrics-port", type=int, default=os.environ.get("WAYBOOK_METRICS_PORT") or -1, metavar="N")
    parser.add_argument("--metrics-host", default=os.environ.get("WAYBOOK_METRICS_HOST") or LOOPBACK)
    parser.add_argument("--metrics-fd", type=int, metavar="FD", help="answer /metrics on this listening socket")
    parser.add_argument("--schema", default=FRONT, help="the schema that users query (default %(default)s)")
    parser.add_argument("--stream", action="append", help=f"a stream of STATE (default {state_stream()})")
    parser.add_argument("--parent", type=int, metavar="PID", help="end when this process is no longer the parent")
    options = parser.parse_args(given)
    for name in ("nats_url", "database_url"):
        if not getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} or WAYBOOK_{name.upper()} is needed")
    return options


async def project(options: argparse.Namespace) -> None:
    """Projects until told to end. Raises ProjectionStopped, PortMisconfigured, MetricsAddressUnusable."""
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    watch = asyncio.create_task(_watch_parent(options.parent, ending)) if options.parent else None
    streams = tuple(options.stream or (state_stream(),))
    with observed(streams, options.metrics_port, options.metrics_host, options.metrics_fd) as observing:
        await _project(options, ProjectorSettings(front=options.schema, streams=streams), observing, ending)
    if watch is not None:
        watch.cancel()


async def _project(
    options: argparse.Namespace, settings: ProjectorSettings, observing: Observed, ending: asyncio.Event
) -> None:
    servers = tuple(options.nats_url.split(","))
    nats = NatsSettings(servers=servers, name="waybook-projector", inbox_prefix=options.nats_inbox_prefix)
    connection = await _connected(nats, ending)
    if connection is None:
        return
    async with connection:
        projector = Projector(connection, options.database_url, settings, hook=observing.hook)
        stopper = asyncio.create_task(_stop_on(ending, projector))
        async with observing.serving(connection, projector):
            await projector.run()
        stopper.cancel()


async def _connected(settings: NatsSettings, ending: asyncio.Event) -> Connection | None:
    while not ending.is_set():
        try:
            return await Connection.open(settings, wait_s=NATS_WAIT_S)
        except PortUnavailable as exc:
            log.warning("waiting for NATS: %s", exc, extra={"action": "projector_waits_for_nats"})
    return None


async def _stop_on(ending: asyncio.Event, projector: Projector) -> None:
    await ending.wait()
    projector.stop()


async def _watch_parent(parent: int, ending: asyncio.Event) -> None:
    """A parent that was killed tells nobody; its children then belong to another process."""
    while os.getppid() == parent:
        with suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), PARENT_LOOK_S)
            return
    log.info("the parent is gone", extra={"action": "projector_orphaned"})
    ending.set()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def main(given: list[str] | None = None) -> int:
    """The exit code, see the module."""
    options = arguments(given)
    logging.basicConfig(
        level=os.environ.get("WAYBOOK_LOG", "WARNING").upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # a batch makes tens of thousands of objects, none of them cyclic
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(project(options))
    except TerminalError as exc:
        log.error("the projection stopped: %s", exc, extra={"action": "projection_stopped"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
