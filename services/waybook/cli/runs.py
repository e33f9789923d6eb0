"""Which run is meant."""

from contextlib import suppress

from waybook.agents.reading import read
from waybook.engine.ports import PortMisconfigured
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RUN_TOKEN, RunKey, state_subject
from waybook.projections.errors import NoReadModels
from waybook.services.bootstrap.installation import Installation
from waybook.services.bootstrap.loading import load_agent
from waybook.services.reading.history import UnknownRun
from waybook.services.reading.models import caught_up

WHOLE_ID = 26
"""Characters of a whole run id."""


MAILS = "inbox"
"""The agent that is meant where none is named."""


class AmbiguousRun(InvalidInput):
    """Several runs begin with these characters."""


def is_class(agent: str) -> bool:
    """Whether an agent is named by its class, as MODULE:AGENT or FILE.py."""
    return ":" in agent or agent.endswith(".py")


def agent_name(agent: str) -> str:
    """The name of an agent that is given by it, or by its class. Raises NoSuchAgent."""
    return read(load_agent(agent)).name if is_class(agent) else agent


async def _is_there(installation: Installation, key: RunKey) -> bool:
    """Whether the log itself has a run of exactly that name: then no read model need be asked, which may stand still."""
    if not RUN_TOKEN.fullmatch(key.run):
        return False
    try:
        return await installation.wiring.state.tail(state_subject(key)) is not None
    except PortMisconfigured:  # no streams: nothing was ever walked here
        return False


async def find_run(installation: Installation, run: str, agent: str) -> RunKey:
    """The run with this id, or the only one whose id begins with it. `agent` is a name, or MODULE:AGENT.

    Raises UnknownRun, AmbiguousRun, NoSuchAgent.
    """
    agent = agent_name(agent)
    exact = RunKey(installation.settings.tenant, agent, run)
    if len(run) >= WHOLE_ID or await _is_there(installation, exact):
        return exact
    found: list[str] = []
    async with caught_up(installation) as models:
        with suppress(NoReadModels):  # nothing was ever walked here
            found = await models.beginning_with(run, agent=agent, tenant=installation.settings.tenant)
    if not found:
        listed = "; `waybook messages` lists the mails" if agent == MAILS else ""
        raise UnknownRun(f"there is no run {run} of agent {agent}{listed}; --agent names another agent")
    if len(found) > 1 and run not in found:
        raise AmbiguousRun(f"several runs begin with {run}: {', '.join(found[:5])}; write more of the id")
    return RunKey(installation.settings.tenant, agent, run if run in found else found[0])
