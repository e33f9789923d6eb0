"""A walker of the built-in agent, with everything that its steps are given."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from waybook.agents.prices import Prices
from waybook.inbox.settings import Models
from waybook.services.bootstrap.agent_job import own_agents
from waybook.services.bootstrap.installation import Installation, walking
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.mail_brakes import mail_brakes, prices
from waybook.services.bootstrap.models import models_at_work, slots
from waybook.services.bootstrap.observing import UNOBSERVED, Observing
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.reading.earlier_mails import EarlierMails
from waybook.services.walker.walker import Walker


@asynccontextmanager
async def walking_mails(
    installation: Installation, observing: Observing = UNOBSERVED, *, scheduler: bool = False, recurring: bool = True
) -> AsyncIterator[Walker]:
    """Walks mails for the time of the block, and tells `observing` of it. Raises as `walking` does.

    `scheduler`: one works beside the walker, in this process; if `recurring` it starts recurring runs. Without a database steps
    see no earlier mails. Models are those of the settings; raises as `models_at_work` too.
    """
    settings, database_url = installation.settings, installation.addresses.database_url
    async with AsyncExitStack() as stack:
        sources = []
        if database_url is not None:
            sources.append(await stack.enter_async_context(EarlierMails.open(database_url, settings.tenant)))
        wiring = installation.wiring
        brakes = mail_brakes(settings, wiring.state, wiring.clock, wiring.snapshots)
        agent, provides = mail_agent(settings, *sources, brakes=brakes)
        if (priced := prices(settings)) is not None:
            provides[Prices] = priced
        agents = [agent, *own_agents(settings)]
        provides[Models] = await stack.enter_async_context(models_at_work(settings, installation.wiring.notes))
        fewer = msgspec.structs.replace(settings, slots=slots(settings))
        walker = await stack.enter_async_context(
            walking(msgspec.structs.replace(installation, settings=fewer), agents, provides)
        )
        beside = None
        if scheduler:
            beside = await stack.enter_async_context(
                scheduling(installation, agents, observing.scheduler_hook, recurring=recurring)
            )
        await stack.enter_async_context(observing.serving(installation.wiring.connection, walker, beside))
        yield walker
