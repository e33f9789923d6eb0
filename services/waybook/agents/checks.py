"""Checks of an agent before its first run (spec: every code with step, parameter, file, line, and the way out)."""

import inspect
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

from waybook.agents.agent import Agent
from waybook.agents.effects import Effects
from waybook.agents.findings import Finding
from waybook.agents.flow import flow_findings
from waybook.agents.injection import (
    ENGINE_PROVIDES,
    PRECONDITION_MAY_ASK,
    instead_of,
    is_config,
    is_step_config,
    name_of,
)
from waybook.agents.lost import lost_steps
from waybook.agents.options import option_findings, setting_findings
from waybook.agents.reading import Sheet, StepBody, read
from waybook.agents.source import source_findings
from waybook.events.typed import DisplayEvent, Event, ExceptionEvent, StopEvent


def check(agent: type[Agent], provides: Collection[type] | None = None) -> tuple[Finding, ...]:
    """All findings on an agent, errors first, each in the order of the file.

    `provides` are types that the installation gives to steps that ask for them; by default those of `Agent.uses`.
    """
    uses = agent.uses if isinstance(agent.uses, tuple | list) else ()  # a finding says so if it is anything else
    return _checked(agent, tuple(uses if provides is None else provides))


@lru_cache(maxsize=32)
def _checked(agent: type[Agent], provides: tuple[type, ...]) -> tuple[Finding, ...]:
    """A class stays as it is, and a check reads all its source: kits make walkers by the hundred."""
    return check_sheet(read(agent), provides)


def check_sheet(sheet: Sheet, provides: Collection[type] | None) -> tuple[Finding, ...]:
    """`check` of a class that was read. Without `provides` it is not asked whether things other than events are there."""
    found = list(setting_findings(sheet))
    if found:
        return tuple(found)
    for body in sheet.bodies:
        found.extend(body.signature.findings)
        for one in _OF_A_STEP:
            found.extend(one(body))
        found.extend(_injected(sheet, body, provides))
    found.extend(_duplicates(sheet))
    found.extend(lost_steps(sheet))
    found.extend(_branches(sheet))
    found.extend(option_findings(sheet))
    found.extend(flow_findings(sheet))
    found.extend(source_findings(sheet))
    found.sort(key=lambda f: (f.level, f.file, f.line))
    return tuple(dict.fromkeys(found))


def _inputs(body: StepBody) -> Iterator[tuple[str, str, type[Event]]]:
    """Each event class that a step takes: parameter, type name, class."""
    classes = {c.__name__: c for c in body.signature.events}
    for parameter in body.signature.parameters:
        for name in parameter.types:
            yield parameter.name, name, classes[name]


def _never_inputs(body: StepBody) -> Iterator[Finding]:
    for parameter, name, cls in _inputs(body):
        if issubclass(cls, StopEvent):
            text = (
                f"`{body.name}` takes the stop event `{name}` as `{parameter}`. The run is over when that event is stored, "
                "so the step can never run. Take a non-stop event and stop in a later step."
            )
            yield body.place.finding("STOP_AS_INPUT", text, parameter)
        elif issubclass(cls, ExceptionEvent):
            text = (
                f"`{body.name}` waits for this run's exception event as `{parameter}`, which is never offered to steps. "
                "Catch the error where it comes up and return an event of your own, or let the step be tried again."
            )
            yield body.place.finding("EXCEPTION_AS_INPUT", text, parameter)
        elif issubclass(cls, DisplayEvent):
            text = (
                f"`{body.name}` takes the display event `{name}` as `{parameter}`; display events are shown and never "
                "stored in the run. Return a plain event for what a step has to wait for."
            )
            yield body.place.finding("DISPLAY_AS_INPUT", text, parameter)


def _shape(body: StepBody) -> Iterator[Finding]:
    name = body.name
    function = body.function
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        text = f"`{name}` is a generator; collect the events in a list and return it, so that they are stored together"
        yield body.place.finding("GENERATOR_STEP", text)
    elif not body.is_async and inspect.iscoroutinefunction(inspect.unwrap(function)):
        text = (
            f"a decorator makes `{name}` a plain function; write `async def` in the decorator, and await the step there"
        )
        yield body.place.finding("STEP_NOT_ASYNC", text)
    elif not body.is_async and not body.options.thread:
        text = (
            f"`{name}` is a plain function; write `async def {name}`, or mark it `@step(thread=True)` to let it block in a "
            "thread of its own"
        )
        yield body.place.finding("STEP_NOT_ASYNC", text)
    if Effects in body.signature.injected.values() and not body.is_async:
        text = f"`{name}` asks for Effects, which are awaited; write `async def {name}`"
        yield body.place.finding("STEP_NOT_ASYNC", text)
    if not body.signature.parameters and not body.signature.findings:
        text = f"`{name}` has no event parameter, so nothing can trigger it; let it take the event after which it runs"
        yield body.place.finding("STEP_WITHOUT_EVENT", text)


def _same_type_twice(body: StepBody) -> Iterator[Finding]:
    taken: dict[str, str] = {}
    for parameter, name, _ in _inputs(body):
        first = taken.setdefault(name, parameter)
        if first != parameter:
            text = (
                f"`{body.name}` takes `{name}` as `{first}` and as `{parameter}`; both would get the same event. Take one "
                f"`list[{name}]` with a precondition, or give the two their own event types."
            )
            yield body.place.finding("SAME_TYPE_TWICE", text, parameter)


def _optional(body: StepBody) -> Iterator[Finding]:
    asked = {t for p in body.precondition.parameters for t in p.types} if body.precondition is not None else set()
    for parameter in body.signature.parameters:
        if not parameter.is_optional or asked & set(parameter.types):
            continue
        types = "|".join(parameter.types)
        text = (
            f"`{body.name}` runs once without `{parameter.name}` and again when {types} arrives. Add a precondition that "
            "checks the configuration and the event, or return the optional event before the required ones."
        )
        yield body.place.finding("OPTIONAL_WITHOUT_PRECONDITION", text, parameter.name)


def _precondition(body: StepBody) -> Iterator[Finding]:
    asked = body.options.precondition
    if asked is None or body.precondition is None:
        return
    yield from body.precondition.findings
    own = {t: p for p in body.signature.parameters for t in p.types}
    for parameter in body.precondition.parameters:
        foreign = [t for t in parameter.types if t not in own]
        if foreign:
            text = (
                f"precondition `{asked.__name__}` of `{body.name}` asks for `{parameter.name}: {'|'.join(parameter.types)}`; "
                f"allowed here are the step's own event types ({', '.join(own) or 'none'}) and "
                f"{', '.join(name_of(k) for k in PRECONDITION_MAY_ASK)}. Let the step take it as well."
            )
            yield body.place.finding("PRECONDITION_NOT_INJECTABLE", text, parameter.name)
            continue
        if not parameter.is_optional and all(own[t].is_optional for t in parameter.types):
            types = "|".join(parameter.types)
            text = (
                f"`{asked.__name__}` requires {types}, the step `{body.name}` takes it optionally: it never runs without "
                f"it. Write `{parameter.name}: {types} | None` there, or require it in the step."
            )
            yield body.place.finding("PRECONDITION_STRICTER", text, parameter.name)


def _list_feeds_stop(body: StepBody) -> Iterator[Finding]:
    classes = {c.__name__: c for c in body.signature.events}
    stops = [n for n in sorted(body.signature.outputs) if issubclass(classes[n], StopEvent)]
    if not stops or body.options.precondition is not None:
        return
    for parameter in body.signature.parameters:
        if parameter.kind in ("list", "optional_list"):
            types = "|".join(parameter.types)
            text = (
                f"`{body.name}` runs for every {types} and stops the run at the first with {stops[0]}; use "
                f"FixedList({types}, N) for `{parameter.name}`, or a precondition that counts"
            )
            yield body.place.finding("LIST_FEEDS_STOP", text, parameter.name)


def _double_dip(body: StepBody) -> Iterator[Finding]:
    for parameter, name, cls in _inputs(body):
        if name in body.signature.outputs and not issubclass(cls, StopEvent):
            text = (
                f"`{body.name}` returns `{name}`, the type that it takes as `{parameter}`, so it triggers itself; use one "
                "type for each state"
            )
            yield body.place.finding("DOUBLE_DIP", text, parameter)


_OF_A_STEP: tuple[Callable[[StepBody], Iterator[Finding]], ...] = (
    _never_inputs,
    _shape,
    _same_type_twice,
    _optional,
    _precondition,
    _list_feeds_stop,
    _double_dip,
)


def _injected(sheet: Sheet, body: StepBody, provides: Collection[type] | None) -> Iterator[Finding]:
    for name, kind in body.signature.injected.items():
        yield from _config(sheet, body, body.name, name, kind)
        if is_config(kind) or kind in ENGINE_PROVIDES or provides is None or kind in provides:
            continue
        if is_step_config(kind):
            if isinstance(body.options.config, kind):
                continue
            text = f"`{body.name}({name}: {name_of(kind)})`: give it with `@step(config={name_of(kind)}(...))`"
        else:
            known = ", ".join(name_of(k) for k in (sheet.agent.config, *ENGINE_PROVIDES, *provides))
            way_out = f"Provide it where the walker is made, and name it in `{sheet.agent.__name__}.uses`."
            if meant := instead_of(kind):
                way_out = f"Several events are taken as {meant}."
            text = (
                f"`{body.name}({name}: {name_of(kind)})` is neither an event nor something the engine provides; there is "
                f"{known}. {way_out}"
            )
        yield body.place.finding("UNRESOLVABLE_PARAMETER", text, name)
    if body.precondition is None or body.options.precondition is None:
        return
    asked = body.options.precondition.__name__
    for name, kind in body.precondition.injected.items():
        yield from _config(sheet, body, f"precondition {asked} of {body.name}", name, kind)
        if is_config(kind) or kind in PRECONDITION_MAY_ASK:
            continue
        if is_step_config(kind) and isinstance(body.options.config, kind):
            continue
        may = ", ".join(name_of(k) for k in PRECONDITION_MAY_ASK)
        text = (
            f"precondition `{asked}` of `{body.name}` asks for `{name}: {name_of(kind)}`; allowed here are the step's own "
            f"event types and {may}. What has to be looked up belongs into a step that returns an event."
        )
        yield body.place.finding("PRECONDITION_NOT_INJECTABLE", text, name)


def _config(sheet: Sheet, body: StepBody, who: str, name: str, kind: object) -> Iterator[Finding]:
    own = sheet.agent.config
    if is_config(kind) and not issubclass(own, kind):  # type: ignore[arg-type]
        text = (
            f"`{who}` asks for `{name}: {name_of(kind)}`, this agent runs with {own.__name__}; take {own.__name__}, or set "
            f"`{sheet.agent.__name__}.config = {name_of(kind)}`"
        )
        yield body.place.finding("CONFIG_TYPE_MISMATCH", text, name)


def _duplicates(sheet: Sheet) -> Iterator[Finding]:
    named = {body.name: body for body in sheet.bodies}
    for hidden in sheet.replaced:
        other = named.get(hidden.name)
        text = (
            f"two steps are named `{hidden.name}`: here and at {other.place.file}:{other.place.line}; executions are "
            "recorded by name, and only one of the two is ever run. Give them different names."
            if other is not None
            else f"the step `{hidden.name}` is replaced further down in its class by something of the same name that is no "
            "step, so it never runs. Give them different names."
        )
        yield hidden.place.finding("DUPLICATE_STEP_NAME", text)
    known: dict[str, type[Event]] = {}
    for cls in sheet.classes:
        first = known.setdefault(cls.__name__, cls)
        if first is not cls:
            text = (
                f"an event class named `{cls.__name__}` already exists in module {first.__module__}; a stored event goes by "
                f"its class name, so rename the one in module {cls.__module__}"
            )
            yield sheet.place.finding("DUPLICATE_EVENT_NAME", text)


def _branches(sheet: Sheet) -> Iterator[Finding]:
    for cls in sheet.classes:
        if cls.BRANCH is not None and cls.BRANCH not in cls.__struct_fields__:
            text = (
                f"`{cls.__name__}.BRANCH` names `{cls.BRANCH}`, which is no field of it, so no branch can be labelled; name "
                f"one of {', '.join(cls.__struct_fields__) or 'its fields, of which it has none'}"
            )
            yield sheet.place.finding("BRANCH_WITHOUT_FIELD", text)
