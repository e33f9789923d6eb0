"""An agent's class, read: its steps with their signatures, and the event classes that they use."""

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import msgspec

from waybook.agents.agent import REPLACED, Agent
from waybook.agents.delegation import AgentFailure, AgentRequest, AgentResponse
from waybook.agents.findings import Place, place_of
from waybook.agents.run_context import ThreadContext
from waybook.agents.signature import Signature, read_signature
from waybook.agents.step import MARK, StepOptions
from waybook.events.typed import Event, RequestEvent, Unanswered


class StepBody(msgspec.Struct, frozen=True):
    """A step's method with what it takes and gives, and where it is written; its precondition's signature, if any.

    `asks_thread`: it asks for the context of its thread, which has to be read first.
    """

    name: str
    function: Callable[..., Any]
    signature: Signature
    options: StepOptions
    is_async: bool
    place: Place
    precondition: Signature | None = None
    asks_thread: bool = False


class Sheet(msgspec.Struct, frozen=True):
    """All that an agent's class says. `replaced` are steps that another one of the same name hides."""

    agent: type[Agent]
    name: str
    place: Place
    bodies: tuple[StepBody, ...]
    replaced: tuple[StepBody, ...]

    @property
    def classes(self) -> tuple[type[Event], ...]:
        """Event classes that it uses, those of delegated work included; two of one name are both there."""
        found: dict[type[Event], None] = dict.fromkeys(self.agent.accepts)
        for body in self.bodies:
            found.update(dict.fromkeys(body.signature.events))
        if AgentRequest in found:
            found.update(dict.fromkeys((AgentResponse, AgentFailure)))
        if any(issubclass(c, RequestEvent) and c.WITHIN_S is not None for c in found):
            found[Unanswered] = None
        return tuple(found)


def read(agent: type[Agent]) -> Sheet:
    """Reads an agent's class; nothing is checked yet."""
    name = agent.name or agent.__name__.lower()
    bodies = [_body(agent, step, function) for step, function in _steps(agent)]
    bodies.sort(key=lambda body: body.place.line)
    hidden = tuple(_body(agent, f.__name__, f) for f in _hidden(agent))
    return Sheet(agent, name, place_of(agent, agent.__name__), tuple(bodies), hidden)


def _steps(agent: type[Agent]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, function in inspect.getmembers(agent, inspect.isfunction):
        if hasattr(function, MARK):
            yield name, function


def _hidden(agent: type[Agent]) -> Iterator[Callable[..., Any]]:
    """Steps that a later one of the same class body replaced, and those of one mixin that another mixin hides.

    A class that derives from the step's own may replace it on purpose.
    """
    seen: dict[str, type] = {}
    for cls in agent.__mro__:
        yield from getattr(cls, REPLACED, ()) if REPLACED in vars(cls) else ()
        for name, value in vars(cls).items():
            if not hasattr(value, MARK):
                continue
            first = seen.setdefault(name, cls)
            if first is not cls and not issubclass(first, cls):
                yield value


def _body(agent: type[Agent], name: str, function: Callable[..., Any]) -> StepBody:
    options: StepOptions = getattr(function, MARK)
    place = place_of(function, agent.__name__, name)
    asked = options.precondition
    precondition = None
    if isinstance(asked, FunctionType):  # of anything else a finding says that it is none
        precondition = read_signature(asked, place_of(asked, agent.__name__, name), method=False)
    is_async = inspect.iscoroutinefunction(function)
    signature = read_signature(function, place)
    asks_thread = ThreadContext in signature.injected.values()
    return StepBody(name, function, signature, options, is_async, place, precondition, asks_thread)
