"""A step's signature, read: event inputs, injected parameters, declared outputs."""

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from waybook.agents.errors import DefinitionError
from waybook.engine.definition import Parameter, ParameterKind
from waybook.events.typed import DisplayEvent, Event, StopEvent


class Signature(msgspec.Struct, frozen=True):
    """`parameters` are filled with events, `injected` by type; `events` are the classes it takes or returns."""

    parameters: tuple[Parameter, ...]
    injected: dict[str, Any]
    outputs: frozenset[str]
    events: tuple[type[Event], ...]


def read_signature(function: Callable[..., Any], where: str) -> Signature:
    """The signature of a step's method. Raises DefinitionError naming `where` and the parameter."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DefinitionError(f"{where}: an annotation cannot be resolved: {error}") from error
    parameters: list[Parameter] = []
    injected: dict[str, Any] = {}
    events: list[type[Event]] = []
    for name in list(inspect.signature(function).parameters)[1:]:
        if name not in hints:
            raise DefinitionError(f"{where}: parameter `{name}` has no type; write the event type it takes")
        kind, classes = _event_parameter(hints[name])
        if not classes:
            injected[name] = _plain(hints[name])
            continue
        _check_inputs(where, name, classes)
        parameters.append(Parameter(name, tuple(c.__name__ for c in classes), kind))
        events.extend(classes)
    if not parameters:
        raise DefinitionError(f"{where}: it has no event parameter, so nothing can trigger it")
    outputs = _outputs(hints.get("return", type(None)), where)
    return Signature(tuple(parameters), injected, frozenset(c.__name__ for c in outputs), (*events, *outputs))


def _check_inputs(where: str, name: str, classes: tuple[type[Event], ...]) -> None:
    for cls in classes:
        if issubclass(cls, StopEvent):
            raise DefinitionError(f"{where}: `{name}` takes the stop event {cls.__name__}; the run is over by then")
        if issubclass(cls, DisplayEvent):
            raise DefinitionError(f"{where}: `{name}` takes the display event {cls.__name__}, which starts no step")


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _members(hint: Any) -> tuple[Any, ...]:
    hint = _plain(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(_plain(a) for a in get_args(hint))
    return (hint,)


def _classes(hint: Any) -> tuple[type[Event], ...]:
    return tuple(m for m in _members(hint) if isinstance(m, type) and issubclass(m, Event))


def _event_parameter(hint: Any) -> tuple[ParameterKind, tuple[type[Event], ...]]:
    hint = _plain(hint)
    if get_origin(hint) is list:
        return "list", _classes(get_args(hint)[0])
    kind: ParameterKind = "optional" if type(None) in _members(hint) else "required"
    return kind, _classes(hint)


def _outputs(hint: Any, where: str) -> tuple[type[Event], ...]:
    found: list[type[Event]] = []
    for member in _members(hint):
        if member is type(None):
            continue
        inner = get_args(member)[0] if get_origin(member) is list else member
        classes = _classes(inner)
        if not classes:
            raise DefinitionError(f"{where}: it returns {member!r}, which is not an event, a list of events or None")
        found.extend(classes)
    return tuple(found)
