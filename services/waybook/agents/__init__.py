"""What an agent author imports: agents, steps and typed events."""

from waybook.agents.agent import Agent
from waybook.agents.approvals import Approvals
from waybook.agents.checks import check
from waybook.agents.config import AgentConfig, StepConfig
from waybook.agents.context import StepContext
from waybook.agents.delegation import AgentFailure, AgentRequest, AgentResponse, delegate
from waybook.agents.displayer import Displayer, Progress, TextChunk
from waybook.agents.effects import Effects, OperationFailed, Receipt
from waybook.agents.errors import DefinitionError, NonRetryable, RetryAfter
from waybook.agents.findings import Finding
from waybook.agents.fixed_list import Exactly, FixedList
from waybook.agents.identity import UserIdentity
from waybook.agents.precondition import precondition
from waybook.agents.run_context import RunContext, ThreadContext
from waybook.agents.schedule import Schedule, ScheduledEvent
from waybook.agents.step import step
from waybook.engine.definition import RetryPolicy, Row, Table
from waybook.events.typed import (
    Decided,
    DecisionEvent,
    DisplayEvent,
    Event,
    ExceptionEvent,
    ExternalEvent,
    RequestEvent,
    StartEvent,
    StopEvent,
    Unanswered,
)

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentFailure",
    "AgentRequest",
    "AgentResponse",
    "Approvals",
    "Decided",
    "DecisionEvent",
    "DefinitionError",
    "DisplayEvent",
    "Displayer",
    "Effects",
    "Event",
    "Exactly",
    "ExceptionEvent",
    "ExternalEvent",
    "Finding",
    "FixedList",
    "NonRetryable",
    "OperationFailed",
    "Progress",
    "Receipt",
    "RequestEvent",
    "RetryAfter",
    "RetryPolicy",
    "Row",
    "RunContext",
    "Schedule",
    "ScheduledEvent",
    "StartEvent",
    "StepConfig",
    "StepContext",
    "StopEvent",
    "Table",
    "TextChunk",
    "ThreadContext",
    "Unanswered",
    "UserIdentity",
    "check",
    "delegate",
    "precondition",
    "step",
]
