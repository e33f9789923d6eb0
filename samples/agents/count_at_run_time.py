"""A count that is known at run time only: a list with a precondition that counts.

The number stands in an event, so the precondition and the step both take that event. `==` lets the step run once; with
`>=` it would run again for every further result.
"""

from waybook.agents import Agent, Event, StartEvent, StopEvent, precondition, step


class Search(StartEvent, frozen=True, kw_only=True):
    sources: list[str]


class Planned(Event, frozen=True, kw_only=True):
    queries: int


class Query(Event, frozen=True, kw_only=True):
    source: str


class Hit(Event, frozen=True, kw_only=True):
    source: str
    score: int


class Best(StopEvent, frozen=True, kw_only=True):
    source: str


@precondition
async def all_there(hits: list[Hit], planned: Planned) -> bool:
    return len(hits) == planned.queries


class Searcher(Agent):
    """Asks all sources, then takes the best hit."""

    @step
    async def plan(self, search: Search) -> list[Planned | Query]:
        return [Planned(queries=len(search.sources)), *(Query(source=source) for source in search.sources)]

    @step
    async def ask(self, query: Query) -> Hit:
        return Hit(source=query.source, score=len(query.source))

    @step(precondition=all_there)
    async def choose(self, hits: list[Hit], planned: Planned) -> Best:
        return Best(source=max(hits, key=lambda hit: hit.score).source)
