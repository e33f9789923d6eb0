"""The definitions that a walker carries: of each agent the current one, and older ones for runs that began under them."""

from collections.abc import Iterable, Iterator, Sequence

from waybook.agents.definition import AgentDefinition
from waybook.agents.errors import DefinitionError
from waybook.engine.ports import ConsumerSpec, lane_consumer
from waybook.engine.run import Run
from waybook.events.subjects import RunKey


class Definitions:
    """Finds the definition by which a run is walked.

    `current` start new runs. `older` only continue what they began; their agents must have a current definition.
    Raises DefinitionError for two current definitions of one agent, and for an older one without a current one.
    """

    def __init__(self, current: Iterable[AgentDefinition], older: Iterable[AgentDefinition] = ()) -> None:
        self._by_agent: dict[str, list[AgentDefinition]] = {}
        for definition in current:
            if definition.engine.agent in self._by_agent:
                raise DefinitionError(
                    f"agent {definition.engine.agent} is given twice; older definitions go by `older`"
                )
            self._by_agent[definition.engine.agent] = [definition]
        for definition in older:
            known = self._by_agent.get(definition.engine.agent)
            if known is None:
                raise DefinitionError(f"an older definition of {definition.engine.agent} is given, and no current one")
            if all(one.engine.hash != definition.engine.hash for one in known):
                known.append(definition)

    def __iter__(self) -> Iterator[AgentDefinition]:
        return (definition for known in self._by_agent.values() for definition in known)

    @property
    def agents(self) -> list[str]:
        """Names of the agents, sorted."""
        return sorted(self._by_agent)

    def current(self, agent: str) -> AgentDefinition | None:
        """The definition that new runs of the agent get; None for an agent that is not carried."""
        known = self._by_agent.get(agent)
        return known[0] if known is not None else None

    def has_older(self, agent: str) -> bool:
        """Whether more than one definition of the agent is carried."""
        return len(self._by_agent.get(agent, ())) > 1

    def carrying(self, agent: str, definition: str) -> AgentDefinition | None:
        """The definition with that hash, else the newest that can continue its runs, else None."""
        known = self._by_agent.get(agent, ())
        exact = next((one for one in known if one.engine.hash == definition), None)
        return exact or next((one for one in known if one.engine.carries(definition)), None)

    def of(self, key: RunKey, run: Run | None) -> AgentDefinition:
        """The definition to decide on a run by; the current one for a new run, and for one that none of these carries."""
        current = self._by_agent[key.agent][0]
        if run is None or run.definition == current.engine.hash:
            return current
        return self.carrying(key.agent, run.definition) or current


def lanes(definitions: Iterable[AgentDefinition]) -> Sequence[ConsumerSpec]:
    """The consumers of the lanes of these definitions."""
    return tuple(lane_consumer(definition.engine.hash) for definition in definitions)
