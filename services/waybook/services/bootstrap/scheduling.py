"""A scheduler at work: in a process of its own, or beside the walker."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from waybook.adapters.nats.notices import NatsNotices
from waybook.adapters.nats.timers import NatsTimers
from waybook.agents.definition import AgentDefinition
from waybook.engine.hooks import Hook, ignore
from waybook.services.bootstrap.beside import beside
from waybook.services.bootstrap.installation import Installation
from waybook.services.reading.hints import ReadModelHints
from waybook.services.scheduler.following import WANTED
from waybook.services.scheduler.hints import Hints, NoHints
from waybook.services.scheduler.recurring import planned
from waybook.services.scheduler.scheduler import Scheduler, SchedulerOptions, SchedulerPorts


@asynccontextmanager
async def scheduling(
    installation: Installation,
    definitions: Iterable[AgentDefinition] = (),
    hook: Hook = ignore,
    *,
    recurring: bool = True,
) -> AsyncIterator[Scheduler]:
    """A scheduler for the time of the block. Raises what broke it; the block is cancelled at that moment.

    `definitions` say in which states runs wait for somebody, and, if `recurring`, when runs begin by themselves. Without a database timers are not reconciled, and a lost
    next move is not noticed.
    """
    settings, wiring, agents = installation.settings, installation.wiring, tuple(definitions)
    database_url = installation.addresses.database_url
    hints: Hints = ReadModelHints(database_url, agents) if database_url is not None else NoHints()
    ports = SchedulerPorts(
        state=wiring.state,
        notices=NatsNotices(wiring.connection, wiring.state.stream, WANTED, ack_wait_s=settings.ack_wait_s),
        timers=NatsTimers(wiring.connection, ack_wait_s=settings.ack_wait_s),
        commands=wiring.commands,
        clock=wiring.clock,
        hints=hints,
    )
    options = SchedulerOptions(
        restarts_per_s=settings.retry_rate,
        burst=max(1, round(2 * settings.retry_rate)),
        still_ms=round(2000 * settings.ack_wait_s),
        exclusive=installation.exclusive,
    )
    plans = planned(settings.tenant, agents) if recurring else ()
    scheduler = Scheduler(ports, options=options, hook=hook, plans=plans)
    async with beside(scheduler.run()):
        try:
            yield scheduler
        finally:
            await scheduler.stop()
