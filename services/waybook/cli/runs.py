"""Which run is meant."""

from contextlib import suppress

from waybook.events.errors import InvalidInput
from waybook.events.subjects import RunKey
from waybook.projections.errors import NoReadModels
from waybook.services.bootstrap.installation import Installation
from waybook.services.reading.history import UnknownRun
from waybook.services.reading.models import caught_up

WHOLE_ID = 26
"""Characters of a whole run id."""


class AmbiguousRun(InvalidInput):
    """Several runs begin with these characters."""


async def find_run(installation: Installation, run: str, agent: str) -> RunKey:
    """The run with this id, or the only one whose id begins with it. Raises UnknownRun, AmbiguousRun."""
    exact = RunKey(installation.settings.tenant, agent, run)
    if len(run) >= WHOLE_ID:
        return exact
    found: list[str] = []
    async with caught_up(installation) as models:
        with suppress(NoReadModels):  # nothing was ever walked here
            found = await models.beginning_with(run, agent=agent, tenant=installation.settings.tenant)
    if not found:
        raise UnknownRun(f"there is no run {run} of agent {agent}; `waybook messages` lists the runs")
    if len(found) > 1 and run not in found:
        raise AmbiguousRun(f"several runs begin with {run}: {', '.join(found[:5])}; write more of the id")
    return RunKey(installation.settings.tenant, agent, run if run in found else found[0])
