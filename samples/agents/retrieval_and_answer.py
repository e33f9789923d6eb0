"""Retrieval and answer: each step declares what it needs, and nothing is passed on for its own sake.

`respond` takes the question itself, although `retrieve` and `rank` ran in between: an event stays until the run ends.
"""

from waybook.agents import Agent, Event, StartEvent, StopEvent, step

DOCUMENTS = {
    "opening hours": "We are open from nine to five.",
    "returns": "Goods can be returned within thirty days.",
    "shipping": "Shipping takes two working days.",
}


class Question(StartEvent, frozen=True, kw_only=True):
    text: str


class Found(Event, frozen=True, kw_only=True):
    passages: list[str]


class Ranked(Event, frozen=True, kw_only=True):
    passages: list[str]


class Answered(StopEvent, frozen=True, kw_only=True):
    text: str


class Assistant(Agent):
    """Looks up passages and answers from the best one."""

    @step
    async def retrieve(self, question: Question) -> Found:
        words = set(question.text.lower().split())
        return Found(passages=[text for title, text in DOCUMENTS.items() if words & set(title.split())])

    @step
    async def rank(self, found: Found, question: Question) -> Ranked:
        words = set(question.text.lower().split())
        return Ranked(passages=sorted(found.passages, key=lambda text: -len(words & set(text.lower().split()))))

    @step
    async def respond(self, ranked: Ranked, question: Question) -> Answered:
        best = ranked.passages[0] if ranked.passages else "I do not know."
        return Answered(text=f"You asked: {question.text} {best}")
