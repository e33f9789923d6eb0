"""Handing work to another agent: its stop event comes back as an event of the caller's run."""

from typing import Any

import msgspec

from waybook.agents.config import AgentConfig
from waybook.agents.errors import IncompleteAgentReference
from waybook.events.subjects import AGENT_TOKEN
from waybook.events.typed import Event, RequestEvent, StartEvent


class AgentRequest(RequestEvent, frozen=True, kw_only=True):
    """Asks another agent to do a piece of work in a run of its own; made by `delegate`.

    A step returns it, alone or in a list. What comes back is one AgentResponse or one AgentFailure, in the caller's run.
    """

    agent: str
    start: str
    fields: dict[str, Any]
    schema: int = 1
    timeout_ms: int | None = None
    configuration: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not self.agent.strip() or not self.start.strip():
            raise IncompleteAgentReference("work is handed to an agent by its name; this one is blank")
        if not AGENT_TOKEN.fullmatch(self.agent) or self.agent.startswith("@"):
            raise IncompleteAgentReference(f"{self.agent!r} is no agent's name: a-z, 0-9, _ and -, up to 32 characters")


class AgentResponse(Event, frozen=True, kw_only=True):
    """The other agent's stop event: `stop` is its type, its fields can be read as if they were this event's own."""

    request: str
    stop: str
    fields: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            fields = self.fields
            if name in fields:
                return fields[name]
        raise AttributeError(f"the answer {self.stop} has no field {name!r}")


class AgentFailure(Event, frozen=True, kw_only=True):
    """The other agent's run ended without a stop event, or did not answer in time. `message` says why."""

    request: str
    message: str


def delegate(
    agent: str, start: StartEvent, *, timeout_s: float | None = None, configuration: AgentConfig | None = None
) -> AgentRequest:
    """The request that lets the agent named `agent` begin with `start`.

    `timeout_s`: an AgentFailure comes when there is no answer by then; None: it is waited for without end, which `waybook
    why` shows. `configuration` is that of the other agent's run. Raises IncompleteAgentReference for a blank name.
    """
    return AgentRequest(
        agent=agent,
        start=type(start).__name__,
        fields=msgspec.to_builtins(start),
        schema=type(start).SCHEMA,
        configuration=msgspec.to_builtins(configuration) if configuration is not None else {},
        timeout_ms=round(timeout_s * 1000) if timeout_s is not None else None,
    )
