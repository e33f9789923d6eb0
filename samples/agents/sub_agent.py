"""Work for another agent: a step returns a request, the other agent's stop event comes back as an answer.

The link between the two runs stands in the log, so the answer finds its way also when every process was replaced in
between. An agent that fails for good, that does not answer in time, or that nobody carries for two minutes, comes back as a
failure; the caller goes on.

Whoever walks the caller has to carry the other agent as well:

    export WAYBOOK_AGENTS=samples/agents/sub_agent.py:Calculator
    waybook start samples/agents/sub_agent.py:Teacher --data '{"text": "21"}'
"""

from waybook.agents import (
    Agent,
    AgentFailure,
    AgentRequest,
    AgentResponse,
    NonRetryable,
    StartEvent,
    StopEvent,
    delegate,
    step,
)


class Double(StartEvent, frozen=True, kw_only=True):
    text: str


class Doubled(StopEvent, frozen=True, kw_only=True):
    number: int


class Calculator(Agent):
    """Doubles a number."""

    @step
    async def double(self, double: Double) -> Doubled:
        if not double.text.isdigit():
            raise NonRetryable(f"{double.text!r} is no number")
        return Doubled(number=int(double.text) * 2)


class Sum(StartEvent, frozen=True, kw_only=True):
    text: str


class Solved(StopEvent, frozen=True, kw_only=True):
    text: str


class Teacher(Agent):
    """Lets the calculator do the work."""

    @step
    async def hand_over(self, sum: Sum) -> AgentRequest:
        return delegate("calculator", Double(text=sum.text), timeout_s=60)

    @step
    async def praise(self, answer: AgentResponse) -> Solved:
        return Solved(text=f"It is {answer.number}.")

    @step
    async def explain(self, failure: AgentFailure) -> Solved:
        return Solved(text=f"No answer: {failure.message}")
