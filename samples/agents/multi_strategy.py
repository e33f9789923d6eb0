"""A LlamaIndex "multi-strategy" workflow as an agent: one question, several strategies side by side, a judge.

There `ctx.send_event` hands out the strategies and `ctx.collect_events` waits for all of them. Here a step returns a list,
its elements are worked on side by side (on several workers, too), and a fixed list waits for all: no step is called again
and again to return None until the last one is there. Each answer is stored, so a process that dies asks nothing twice.
"""

from typing import Annotated

from waybook.agents import Agent, Displayer, Event, Exactly, StartEvent, StopEvent, step

STRATEGIES = ("naive", "high_top_k", "rerank")


class Query(StartEvent, frozen=True, kw_only=True):
    text: str


class Strategy(Event, frozen=True, kw_only=True):
    name: str


class Candidate(Event, frozen=True, kw_only=True):
    strategy: str
    answer: str
    score: float


class Judged(StopEvent, frozen=True, kw_only=True):
    strategy: str
    answer: str


def ask(strategy: str, text: str) -> tuple[str, float]:
    """What a strategy answers, and how sure it is."""
    return f"{text} ({strategy})", len(strategy) / 10


class MultiStrategy(Agent):
    """Answers a question in several ways and takes the best."""

    @step
    async def plan(self, query: Query) -> list[Strategy]:
        return [Strategy(name=name) for name in STRATEGIES]

    @step
    async def answer(self, strategy: Strategy, query: Query, displayer: Displayer) -> Candidate:
        await displayer.progress(f"asking {strategy.name}")
        answer, score = ask(strategy.name, query.text)
        return Candidate(strategy=strategy.name, answer=answer, score=score)

    @step
    async def judge(self, candidates: Annotated[list[Candidate], Exactly(len(STRATEGIES))]) -> Judged:
        best = max(candidates, key=lambda candidate: candidate.score)
        return Judged(strategy=best.strategy, answer=best.answer)
