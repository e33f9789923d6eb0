"""A bounded loop: a step returns an event of an earlier stage; the number of rounds is kept in the run context.

The run context is for control flow such as this counter. `max_executions` is the seat belt: even with a mistake in the
condition the loop ends, and `waybook why` says that the limit was reached.
"""

from waybook.agents import Agent, AgentConfig, Event, RunContext, StartEvent, StopEvent, step


class LoopConfig(AgentConfig, frozen=True, kw_only=True):
    rounds: int = 3


class Topic(StartEvent, frozen=True, kw_only=True):
    text: str


class Draft(Event, frozen=True, kw_only=True):
    text: str


class Critique(Event, frozen=True, kw_only=True):
    draft: str
    remark: str


class Final(StopEvent, frozen=True, kw_only=True):
    text: str
    rounds: int


class Writer(Agent):
    """Improves a draft for a number of rounds."""

    config = LoopConfig

    @step
    async def begin(self, topic: Topic) -> Draft:
        return Draft(text=topic.text)

    @step(max_executions=10)
    async def review(self, draft: Draft, run: RunContext, config: LoopConfig) -> Critique | Final:
        if run.increment("rounds") > config.rounds:
            return Final(text=draft.text, rounds=config.rounds)
        return Critique(draft=draft.text, remark="more")

    @step
    async def improve(self, critique: Critique) -> Draft:
        return Draft(text=f"{critique.draft} {critique.remark}")
