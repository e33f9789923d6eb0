"""Builds what the engine and the walker need from an agent's class."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from waybook.agents.agent import Agent
from waybook.agents.effects import Effects
from waybook.agents.errors import DefinitionError, UndeclaredOutput
from waybook.agents.signature import Signature, read_signature
from waybook.agents.step import MARK, StepOptions
from waybook.engine.definition import HASH_DIGITS, SHAPE_DIGITS, Definition, EventKind, Step, Table
from waybook.engine.inputs import Output
from waybook.events.registry import Registry
from waybook.events.subjects import check_token
from waybook.events.typed import DecisionEvent, Event, ExternalEvent, StartEvent, StopEvent


class StepBody(msgspec.Struct, frozen=True):
    """A step's method with what it takes and gives."""

    name: str
    function: Callable[..., Any]
    signature: Signature
    options: StepOptions
    is_async: bool


class AgentDefinition(msgspec.Struct, frozen=True):
    """A definition ready to run: the engine's view, the bodies, and the event classes by name."""

    agent: type[Agent]
    engine: Definition
    bodies: Mapping[str, StepBody]
    events: Mapping[str, type[Event]]
    registry: Registry

    def decode(self, event: str, schema: int, payload: msgspec.Raw) -> Event:
        """The typed event of a stored payload; DefinitionError for a type that this agent does not know.

        Raises UnreadableEvent and SchemaTooNew like `Registry.read`.
        """
        if event not in self.events:
            raise DefinitionError(f"agent {self.engine.agent} does not know the event {event}")
        return self.registry.read_payload(event, schema, payload)

    def output(self, event: Event, branch: str | None = None) -> Output:
        """An event as the engine stores it. Raises UnstorableEvent."""
        stored = self.registry.encode(event)
        return Output(stored.event, stored.schema, stored.payload, event, branch, stored.ancestors)

    def outputs(self, step: str, returned: Any) -> tuple[Output, ...]:
        """What a step's body returned, checked against its annotation. Raises UndeclaredOutput."""
        events = [] if returned is None else returned if isinstance(returned, list) else [returned]
        declared = self.engine.steps[step].outputs
        for event in events:
            if not isinstance(event, Event) or type(event).__name__ not in declared:
                names = ", ".join(sorted(declared)) or "nothing"
                raise UndeclaredOutput(f"step {step} returned {type(event).__name__}; it declares {names}")
        return tuple(self.output(event) for event in events)


def define(agent: type[Agent]) -> AgentDefinition:
    """The definition of an agent's class. Raises DefinitionError naming step, parameter and the way out."""
    name = check_token("the agent's name", agent.name or agent.__name__.lower())
    bodies = {body.name: body for body in _bodies(agent)}
    if not bodies:
        raise DefinitionError(f"agent {name} has no step; mark its methods with @step")
    events = _events(agent, bodies)
    if not any(issubclass(cls, StartEvent) for cls in events.values()):
        raise DefinitionError(f"agent {name}: no step takes a start event, so no run can begin")
    steps = tuple(_step(body) for body in bodies.values())
    registry = Registry(*events.values())
    registry.check()
    built: list[AgentDefinition] = []
    engine = Definition.build(
        agent=name,
        hash=_definition_hash(steps, events, agent.table),
        steps=steps,
        table=agent.table,
        kinds={n: _kind(cls) for n, cls in events.items()},
        decode=lambda event, schema, payload: built[0].decode(event, schema, payload),
        schemas={n: cls.SCHEMA for n, cls in events.items() if issubclass(cls, DecisionEvent)},
    )
    built.append(AgentDefinition(agent, engine, bodies, events, registry))
    return built[0]


def _bodies(agent: type[Agent]) -> list[StepBody]:
    found = []
    for name, function in inspect.getmembers(agent, inspect.isfunction):
        options = getattr(function, MARK, None)
        if options is not None:
            signature = read_signature(function, f"{agent.__name__}.{name}")
            is_async = inspect.iscoroutinefunction(function)
            if Effects in signature.injected.values() and not is_async:
                raise DefinitionError(f"{agent.__name__}.{name}: side effects are awaited; make the step `async def`")
            found.append(StepBody(name, function, signature, options, is_async))
    found.sort(key=lambda body: body.function.__code__.co_firstlineno)
    return found


def _events(agent: type[Agent], bodies: Mapping[str, StepBody]) -> dict[str, type[Event]]:
    events: dict[str, type[Event]] = {}
    for cls in (*agent.accepts, *(c for b in bodies.values() for c in b.signature.events)):
        known = events.setdefault(cls.__name__, cls)
        if known is not cls:
            raise DefinitionError(
                f"two event classes are named {cls.__name__}: {known.__module__} and {cls.__module__}"
            )
    return events


def _kind(cls: type[Event]) -> EventKind:
    kinds = ((StartEvent, "start"), (StopEvent, "stop"), (DecisionEvent, "decision"), (ExternalEvent, "external"))
    for base, kind in kinds:
        if issubclass(cls, base):
            return kind  # type: ignore[return-value]
    return "plain"


def _step(body: StepBody) -> Step:
    return Step(
        name=body.name,
        parameters=body.signature.parameters,
        outputs=body.signature.outputs,
        retry=body.options.retry,
        deadline_ms=round(body.options.deadline_s * 1000),
        code_hash=_digest(_source(body.function), *(_source(d) for d in body.options.depends)),
        max_executions=body.options.max_executions,
        stop_on_error=body.options.stop_on_error,
    )


def _source(thing: Any) -> str:
    """The source of a function or module; its code's bytes where there is no source (an interactive session)."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        return repr((code.co_code, code.co_consts, code.co_names)) if code is not None else repr(thing)


def _definition_hash(steps: tuple[Step, ...], events: Mapping[str, type[Event]], table: Table) -> str:
    """Content hash over steps, event schemas and table (DESIGN 4): 16 hexadecimal digits.

    The first eight are the shape's: what the steps take and give, the events' fields, the table's states and rows. The
    others cover all that may change while stored runs keep their meaning: code, limits, deadlines, descriptions.
    """
    schemas = {n: msgspec.json.schema(cls) for n, cls in sorted(events.items())}
    takes = [(s.name, s.parameters, s.outputs) for s in steps]
    rows = [(r.name, r.state, r.on, r.next, r.restart) for r in table.rows]
    states = (table.initial, sorted(table.states), sorted(table.terminal))
    kinds = [(n, _kind(cls), cls.SCHEMA) for n, cls in sorted(events.items())]
    shape = _digest(takes, _undescribed(schemas), kinds, states, rows)
    functions = [[_source(f) if f is not None else "" for f in (r.guard, r.fields, r.reason)] for r in table.rows]
    return shape[:SHAPE_DIGITS] + _digest(steps, schemas, functions, table.waits)[SHAPE_DIGITS:]


def _undescribed(schema: Any) -> Any:
    """A JSON Schema without its texts for people, which change nothing."""
    if isinstance(schema, list):
        return [_undescribed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = ((k, v) for k, v in schema.items() if not (k in ("description", "title") and isinstance(v, str)))
    return {k: _undescribed(v) for k, v in kept}


def _digest(*parts: object) -> str:
    texts = (p if isinstance(p, str) else msgspec.json.encode(p, enc_hook=str, order="sorted").decode() for p in parts)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:HASH_DIGITS]
