"""Checks of what an author says beside the signatures: options of steps, settings of the agent, fields of events."""

import inspect
import math
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType
from typing import Any

import msgspec

from waybook.agents.config import AgentConfig, StepConfig
from waybook.agents.findings import Finding
from waybook.agents.reading import Sheet, StepBody
from waybook.agents.recurring import schedule_findings
from waybook.agents.schedule import Schedule
from waybook.agents.step import MARK
from waybook.engine.definition import RetryPolicy, Table
from waybook.events.registry import Registry, RegistryError
from waybook.events.subjects import TOKEN
from waybook.events.typed import Event, RequestEvent

MOST_S = 366 * 86_400 * 10
"""Ten years: no deadline is longer, and every clock can hold it."""


def option_findings(sheet: Sheet) -> Iterator[Finding]:
    """Findings on options and event classes: what would fail when the agent is run, or be passed over."""
    for body in sheet.bodies:
        for option, text in _options(body):
            message = f"`@step({option}={getattr(body.options, option)!r})` of `{body.name}` needs {text}"
            yield body.place.finding("INVALID_OPTION", message)
        yield from _method(body)
    yield from _wrapped(sheet)
    for cls in sheet.classes:
        for text in _event(cls):
            yield sheet.place.finding("INVALID_EVENT", text)
    for name, text in schedule_findings(sheet):
        yield sheet.place.finding("INVALID_OPTION", f"schedule `{name}` of `{sheet.agent.__name__}` needs {text}")


def setting_findings(sheet: Sheet) -> Iterator[Finding]:
    """Findings on what stands in the class beside its steps; the other checks can rely on it when there are none."""
    for setting, text in _settings(sheet):
        message = f"`{sheet.agent.__name__}.{setting} = {getattr(sheet.agent, setting)!r}` needs {text}"
        yield sheet.place.finding("INVALID_OPTION", message)


def _seconds(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 < value <= MOST_S  # type: ignore[arg-type, operator]


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _options(body: StepBody) -> Iterator[tuple[str, str]]:
    options = body.options
    if options.max_executions is not None and not _whole(options.max_executions, 1):
        yield "max_executions", "a whole number above zero, or None for no limit"
    if not _seconds(options.deadline_s):
        yield "deadline_s", "a number of seconds above zero, ten years at most"
    policy: Any = options.retry
    if not isinstance(policy, RetryPolicy):
        yield "retry", f"a RetryPolicy, such as RetryPolicy(max_failures={policy if _whole(policy, 1) else 3})"
    elif not _whole(policy.max_failures, 1):
        yield "retry", "`max_failures` of 1 at least: the first attempt counts"
    elif not (policy.grid_ms is None or _whole(policy.grid_ms, 1)) or not _whole(policy.wait_budget_ms, 0):
        yield "retry", "whole milliseconds in `grid_ms` and `wait_budget_ms`"
    for name in ("stop_on_error", "thread"):
        if not isinstance(getattr(options, name), bool):
            yield name, "True or False"
    if options.thread is True and body.is_async:
        yield "thread", f"a plain function: write `def {body.name}` without `async`, or leave `thread` out"
    if options.config is not None and not isinstance(options.config, StepConfig):
        yield "config", "an object of a subclass of StepConfig"
    if isinstance(options.depends, str) or not isinstance(options.depends, tuple | list):
        yield "depends", "a tuple of functions and modules, such as depends=(helper,)"
    if options.precondition is not None and not isinstance(options.precondition, FunctionType):
        yield "precondition", "a function, marked with @precondition"


def _method(body: StepBody) -> Iterator[Finding]:
    """A step that forgets `self` would get the agent in place of its first event."""
    first = next(iter(inspect.signature(body.function).parameters.values()), None)
    if first is None or (first.name != "self" and first.annotation is not first.empty):
        text = f"`{body.name}` has no `self`; a step is a method: write `async def {body.name}(self, ...)`"
        yield body.place.finding("STEP_WITHOUT_SELF", text, first.name if first is not None else None)


def _wrapped(sheet: Sheet) -> Iterator[Finding]:
    """Steps that are no methods, and would be passed over without a word."""
    for name, value in inspect.getmembers_static(sheet.agent):
        if isinstance(value, staticmethod | classmethod) and hasattr(value.__func__, MARK):
            kind = type(value).__name__
            text = f"`{name}` is a {kind}; a step is a method: write `async def {name}(self, ...)` with @step alone"
            yield sheet.place.finding("STEP_WITHOUT_SELF", text)


def _settings(sheet: Sheet) -> Iterator[tuple[str, str]]:
    agent: Any = sheet.agent
    if not isinstance(agent.name, str) or not TOKEN.fullmatch(sheet.name):
        yield "name", f"a-z, 0-9, _ and - alone (pattern {TOKEN.pattern}); by default it is the class's name"
    if agent.run_deadline_s is not None and not _seconds(agent.run_deadline_s):
        yield "run_deadline_s", "a number of seconds above zero, ten years at most, or None for no limit"
    if not (isinstance(agent.config, type) and issubclass(agent.config, AgentConfig)):
        yield "config", "a subclass of AgentConfig (the class, no object of it)"
    elif (wrong := _fields(agent.config)) is not None:
        yield "config", f"fields that can be stored: {wrong}"
    if not isinstance(agent.table, Table):
        yield "table", "a Table of rows"
    for setting, kind in (("accepts", Event), ("uses", object)):
        given = getattr(agent, setting)
        if not isinstance(given, tuple | list) or not all(isinstance(c, type) and issubclass(c, kind) for c in given):
            yield setting, f"a tuple of {'event classes' if kind is Event else 'classes'}"
    if not isinstance(agent.schedules, tuple | list) or not all(isinstance(s, Schedule) for s in agent.schedules):
        yield "schedules", "a tuple of Schedules"


@lru_cache(maxsize=512)
def _event(cls: type[Event]) -> tuple[str, ...]:
    """What keeps an event class from being stored. A class stays as it is, and its schema takes a while to make."""
    if cls is Event:
        return (
            "`Event` is the base of all events, and no step is triggered by a base; derive a class of its own from it",
        )
    if (wrong := _fields(cls)) is not None:
        return (f"`{cls.__name__}` cannot be stored: {wrong}",)
    try:
        Registry(cls)
    except RegistryError as error:
        return (str(error),)
    if issubclass(cls, RequestEvent) and cls.WITHIN_S is not None and not _seconds(cls.WITHIN_S):
        return (
            f"`{cls.__name__}.WITHIN_S = {cls.WITHIN_S!r}` needs a number of seconds above zero, or None for no end",
        )
    return ()


def _fields(cls: type[msgspec.Struct]) -> str | None:
    """What is wrong with the fields of a struct that has to become JSON and come back."""
    try:
        msgspec.json.schema(cls)
        msgspec.json.Decoder(cls)
    except (TypeError, ValueError, NameError) as error:
        try:
            fields = msgspec.structs.fields(cls)
        except (TypeError, ValueError, NameError):
            return f"{error}; import the name where the class is defined"
        for field in fields:
            if not _has_form(field.type):
                shown = getattr(field.type, "__name__", None) or repr(field.type)
                return (
                    f"field `{field.name}: {shown}` has no form in JSON; take plain types, or a msgspec.Struct of them"
                )
        return str(error)
    return None


def _has_form(kind: Any) -> bool:
    try:
        msgspec.json.schema(kind)
        msgspec.json.Decoder(kind)
    except (TypeError, ValueError, NameError):
        return False
    return True
