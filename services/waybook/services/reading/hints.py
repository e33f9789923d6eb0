"""Where a scheduler should look, by the read models."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.ports import TimerRef
from waybook.events.engine import TimerClass
from waybook.events.subjects import RunKey
from waybook.projections.errors import NoReadModels
from waybook.projections.read_models import ReadModels
from waybook.services.scheduler.hints import Still


class ReadModelHints:
    """The port Hints. It connects for each question: they are minutes apart.

    `definitions` say in which states runs wait for somebody; runs of other agents may wait in any.
    """

    def __init__(self, database_url: str, definitions: Iterable[AgentDefinition] = ()) -> None:
        self._url = database_url
        self._engines = {definition.engine.agent: definition.engine for definition in definitions}
        self._agents = list(self._engines)
        self._parked = [f"{e.agent}:{state}" for e in self._engines.values() for state in e.table.waits]

    async def pending_timers(self) -> Sequence[TimerRef]:
        """See Hints."""
        rows = await self._ask(lambda models: models.timers())
        return [
            TimerRef(_key(row), row["timer"], msgspec.convert(row["class"], TimerClass), row["due"]) for row in rows
        ]

    async def standing_still(self, since_ms: int) -> Sequence[Still]:
        """See Hints."""
        rows = await self._ask(lambda models: models.standing_still(since_ms, parked=self._parked, agents=self._agents))
        return [Still(_key(row), row["sequence"]) for row in rows if self._may_go_on(row)]

    def _may_go_on(self, row: dict[str, Any]) -> bool:
        """Whether a worker may carry the run's definition. Of one that nobody carries it would only fill its lane."""
        engine = self._engines.get(row["agent"])
        return engine is None or engine.carries(row["definition"])

    async def unsent(self, tenant: str) -> Sequence[RunKey]:
        """See Hints."""
        return [_key(row) for row in await self._ask(lambda models: models.unsent(tenant))]

    async def _ask(self, question: Callable[[ReadModels], Awaitable[list[dict[str, Any]]]]) -> list[dict[str, Any]]:
        async with ReadModels.open(self._url) as models:
            try:
                return await question(models)
            except NoReadModels:
                return []  # the projector is just making them


def _key(row: dict[str, Any]) -> RunKey:
    return RunKey(row["tenant"], row["agent"], row["run"])
