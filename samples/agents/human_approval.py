"""A person in the loop: a step returns a question, the run parks without a worker, the answer goes on.

The question is a `RequestEvent`, the answer an `ExternalEvent`; each question has its own pair of types, since steps
are found by exact type. The first answer to a question wins. Without one in time the run gets an `Unanswered`.
"""

from waybook.agents import Agent, ExternalEvent, RequestEvent, StartEvent, StopEvent, Unanswered, step


class Order(StartEvent, frozen=True, kw_only=True):
    item: str
    price: int


class MayIBuy(RequestEvent, frozen=True, kw_only=True):
    WITHIN_S = 3 * 24 * 3600

    question: str


class Decision(ExternalEvent, frozen=True, kw_only=True):
    yes: bool
    by: str = ""  # who gave it, filled in by the walker


class Bought(StopEvent, frozen=True, kw_only=True):
    item: str
    by: str


class Dropped(StopEvent, frozen=True, kw_only=True):
    reason: str


class Buyer(Agent):
    """Asks before it buys."""

    @step
    async def ask(self, order: Order) -> MayIBuy:
        return MayIBuy(question=f"Buy {order.item} for {order.price}?")

    @step
    async def act(self, decision: Decision, order: Order) -> Bought | Dropped:
        if not decision.yes:
            return Dropped(reason=f"{decision.by} said no")
        return Bought(item=order.item, by=decision.by)

    @step
    async def give_up(self, unanswered: Unanswered, order: Order) -> Dropped:
        return Dropped(reason=f"nobody decided on {order.item} in time")
