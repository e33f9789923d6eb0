"""What an agent author imports: agents, steps and typed events."""

from waybook.agents.agent import Agent
from waybook.agents.approvals import Approvals
from waybook.agents.context import StepContext
from waybook.agents.effects import Effects, OperationFailed, Receipt
from waybook.agents.errors import DefinitionError, NonRetryable, RetryAfter
from waybook.agents.step import step
from waybook.engine.definition import RetryPolicy, Row, Table
from waybook.events.typed import Decided, DecisionEvent, DisplayEvent, Event, ExternalEvent, StartEvent, StopEvent

__all__ = [
    "Agent",
    "Approvals",
    "Decided",
    "DecisionEvent",
    "DefinitionError",
    "DisplayEvent",
    "Effects",
    "Event",
    "ExternalEvent",
    "NonRetryable",
    "OperationFailed",
    "Receipt",
    "RetryAfter",
    "RetryPolicy",
    "Row",
    "StartEvent",
    "StepContext",
    "StopEvent",
    "Table",
    "step",
]
