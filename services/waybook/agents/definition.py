"""Builds what the engine and the walker need from an agent's class."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from waybook.agents.agent import Agent
from waybook.agents.checks import check_sheet
from waybook.agents.config import AgentConfig
from waybook.agents.delegation import AgentRequest
from waybook.agents.errors import DefinitionError, UndeclaredOutput
from waybook.agents.findings import errors
from waybook.agents.gate import gate
from waybook.agents.reading import StepBody, read
from waybook.engine.definition import HASH_DIGITS, SHAPE_DIGITS, Decode, Definition, EventKind, Gate, Step
from waybook.engine.inputs import Output
from waybook.events.registry import Registry
from waybook.events.typed import DecisionEvent, Event, ExternalEvent, RequestEvent, StartEvent, StopEvent

MOST_LABEL = 100
"""Characters of a branch's label that are kept."""


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
        """An event as the engine stores it; its own label counts before `branch`.

        Raises UnstorableEvent, also when a field does not have the type that its class says.
        """
        stored = self.registry.encode(event)
        self.registry.check_fields(stored)
        if event.BRANCH is not None:
            branch = str(getattr(event, event.BRANCH))[:MOST_LABEL]
        return Output(stored.event, stored.schema, stored.payload, event, branch, stored.ancestors)

    def outputs(self, step: str, returned: Any) -> tuple[Output, ...]:
        """What a step's body returned, checked against its annotation. Raises UndeclaredOutput."""
        declared = self.engine.steps[step].outputs
        if isinstance(returned, Event) and type(returned).__name__ in declared:  # as most steps return
            return (self.output(returned),)
        events = [] if returned is None else returned if isinstance(returned, list) else [returned]
        for event in events:
            if not isinstance(event, Event) or type(event).__name__ not in declared:
                names = ", ".join(sorted(declared)) or "nothing"
                raise UndeclaredOutput(f"step {step} returned {type(event).__name__}; it declares {names}")
        return tuple(self.output(event) for event in events)

    def with_retry_grid(self, grid_ms: int) -> "AgentDefinition":
        """The same agent on another grid of retries, for the steps whose policy names none; its hash stays."""
        return msgspec.structs.replace(self, engine=msgspec.structs.replace(self.engine, retry_grid_ms=grid_ms))


def define(agent: type[Agent]) -> AgentDefinition:
    """The definition of an agent's class. Raises DefinitionError with every error that `check` finds.

    Whether things other than events that steps ask for are provided is checked by who provides them.
    """
    sheet = read(agent)
    name = sheet.name
    if not sheet.bodies:
        raise DefinitionError(f"agent {name} has no step; mark its methods with @step")
    wrong = errors(check_sheet(sheet, None))
    if wrong:
        raise DefinitionError(f"agent {name} cannot run:\n" + "\n".join(str(f) for f in wrong), wrong)
    bodies = {body.name: body for body in sheet.bodies}
    events = {cls.__name__: cls for cls in sheet.classes}
    steps = tuple(_step(body) for body in bodies.values())
    registry = Registry(*events.values())
    registry.check()
    built: list[AgentDefinition] = []

    def decode(event: str, schema: int, payload: msgspec.Raw) -> Event:
        return built[0].decode(event, schema, payload)

    engine = Definition.build(
        agent=name,
        hash=_definition_hash(agent, steps, events),
        steps=steps,
        table=agent.table,
        kinds={n: _kind(cls) for n, cls in events.items()},
        schemas={n: cls.SCHEMA for n, cls in events.items() if issubclass(cls, DecisionEvent)},
        decode=decode,
        gates=_gates(agent, sheet.bodies, decode),
        check_configuration=_checking(agent.config) if agent.config is not AgentConfig else None,
        answer_within_ms=_answer_within_ms(events),
        run_deadline_ms=round(agent.run_deadline_s * 1000) if agent.run_deadline_s is not None else None,
    )
    built.append(AgentDefinition(agent, engine, bodies, events, registry))
    return built[0]


def _gates(agent: type[Agent], bodies: Iterable[StepBody], decode: Decode) -> dict[str, Gate]:
    gates: dict[str, Gate] = {}
    for body in bodies:
        asked = body.options.precondition
        if asked is not None and body.precondition is not None:
            gates[body.name] = gate(
                asked, body.precondition, config=agent.config, step_config=body.options.config, decode=decode
            )
    return gates


def _checking(config: type[AgentConfig]) -> Callable[[Mapping[str, Any]], str | None]:
    """What is wrong with the configuration of a run, in words, or None."""

    def check(given: Mapping[str, Any]) -> str | None:
        try:
            msgspec.convert(dict(given), config)
        except msgspec.ValidationError as error:
            return f"{config.__name__}: {error}"
        return None

    return check


def _kind(cls: type[Event]) -> EventKind:
    for base, kind in (
        (StartEvent, "start"),
        (StopEvent, "stop"),
        (DecisionEvent, "decision"),
        (ExternalEvent, "external"),
        (AgentRequest, "delegation"),
        (RequestEvent, "request"),
    ):
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
        code_hash=_code_hash(body),
        max_executions=body.options.max_executions,
        stop_on_error=body.options.stop_on_error,
    )


def _code_hash(body: StepBody) -> str:
    options = body.options
    parts = [_source(body.function), *(_source(d) for d in options.depends)]
    if options.precondition is not None:
        parts.append(_source(options.precondition))
    if options.config is not None:
        parts.append(msgspec.json.encode(options.config).decode())
    return _digest(*parts)


def _source(thing: Any) -> str:
    """The source of a function or module; its code's bytes where there is no source (an interactive session)."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        return repr((code.co_code, code.co_consts, code.co_names)) if code is not None else repr(thing)


def _answer_within_ms(events: Mapping[str, type[Event]]) -> dict[str, int]:
    """How long answers are waited for, by type of the question."""
    asked = {n: cls.WITHIN_S for n, cls in sorted(events.items()) if issubclass(cls, RequestEvent)}
    return {n: round(within * 1000) for n, within in asked.items() if within is not None}


def _definition_hash(agent: type[Agent], steps: tuple[Step, ...], events: Mapping[str, type[Event]]) -> str:
    """Content hash over steps, event schemas and table (DESIGN 4): 16 hexadecimal digits.

    The first eight are the shape's: what the steps take and give, the events' fields, the table's states and rows. The
    others cover all that may change while stored runs keep their meaning: code, limits, deadlines, descriptions.
    """
    table = agent.table
    schemas = {n: msgspec.json.schema(cls) for n, cls in sorted(events.items())}
    takes = [(s.name, s.parameters, s.outputs) for s in steps]
    rows = [(r.name, r.state, r.on, r.next, r.restart) for r in table.rows]
    states = (table.initial, sorted(table.states), sorted(table.terminal))
    kinds = [(n, _kind(cls), cls.SCHEMA) for n, cls in sorted(events.items())]
    shape = _digest(takes, _undescribed(schemas), kinds, states, rows)
    functions = [
        [_source(f) if f is not None else "" for f in (r.guard, r.fields, r.reason, r.keeps)] for r in table.rows
    ]
    limits: list[Any] = [_answer_within_ms(events), agent.run_deadline_s]
    if agent.config is not AgentConfig:
        limits.append(msgspec.json.schema(agent.config))
    return shape[:SHAPE_DIGITS] + _digest(steps, schemas, functions, table.waits, limits)[SHAPE_DIGITS:]


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
