"""Open runs that no worker carries: they began under another definition of their agent (hold "no worker")."""

import logging
from collections.abc import Collection, Iterable

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.ports import CommandQueue, lane_consumer
from waybook.projections.errors import NoReadModels
from waybook.projections.read_models import ReadModels
from waybook.services.bootstrap.installation import Installation
from waybook.services.reading.models import last_position
from waybook.services.walker.definitions import Definitions

log = logging.getLogger(__name__)

CATCH_UP_S = 10.0


class Unserved(msgspec.Struct, frozen=True):
    """A run that stays as it is until a worker with its definition comes."""

    run: str
    agent: str
    status: str
    definition: str


async def left_behind(installation: Installation, definitions: Collection[AgentDefinition]) -> list[Unserved]:
    """The installation's open runs that nobody carries on, with read models that a projector has caught up just now.

    After 10 s without that it is told by what they hold. Raises PortUnavailable.
    """
    async with ReadModels.open(installation.database_url) as models:
        try:
            await models.wait_until(await last_position(installation.wiring), CATCH_UP_S)
        except TimeoutError:
            log.warning("the read models lag behind", extra={"action": "read_models_lag"})
        try:
            return await unserved(models, installation.wiring.commands, definitions, installation.settings.tenant)
        except NoReadModels:
            return []  # the projector is just making them, so there was no run


async def unserved(
    models: ReadModels, commands: CommandQueue, definitions: Iterable[AgentDefinition], tenant: str | None = None
) -> list[Unserved]:
    """The open runs that neither `definitions` carry nor a worker who takes their lane, oldest first.

    The read models are a hint where to look; the lanes are asked now. Raises NoReadModels, PortUnavailable.
    """
    carried = Definitions(definitions)
    rows = await models.open_runs(tenant=tenant, but=[one.engine.hash for one in carried])
    lost: dict[tuple[str, str], bool] = {}
    for row in rows:
        named = (row["agent"], row["definition"])
        if named not in lost:
            here = carried.carrying(*named) is not None
            lost[named] = not (here or await commands.is_taken(lane_consumer(row["definition"]).name))
    found = [row for row in rows if lost[row["agent"], row["definition"]]]
    return [Unserved(row["run"], row["agent"], row["status"], row["definition"]) for row in found]
