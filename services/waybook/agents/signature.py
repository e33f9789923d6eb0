"""A step's or a precondition's signature, read: event inputs, injected parameters, declared outputs."""

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from waybook.agents.findings import Finding, Place
from waybook.agents.fixed_list import Exactly
from waybook.engine.definition import Parameter, ParameterKind
from waybook.events.typed import Event


class Signature(msgspec.Struct, frozen=True):
    """`parameters` are filled with events, `injected` by type; `events` are the classes it takes or returns.

    `nullable` are injected parameters that may stay empty. `findings`: what cannot be read, or only with care.
    """

    parameters: tuple[Parameter, ...]
    injected: dict[str, Any]
    outputs: frozenset[str]
    events: tuple[type[Event], ...]
    nullable: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()


class _Input(msgspec.Struct, frozen=True):
    """What one annotation asks for. `nullable`: it may also be none. `mixed`: a list, or a single event."""

    classes: tuple[type[Event], ...] = ()
    many: bool = False
    size: Any = None
    nullable: bool = False
    other: Any = None
    mixed: bool = False


def read_signature(function: Callable[..., Any], place: Place, *, method: bool = True) -> Signature:
    """The signature of a step's method, or of a precondition (no `method`). What is wrong stands in its findings."""
    who = place.step or function.__name__
    who = who if method else f"{function.__name__}` of `{who}"
    reader = _Reader(place, who)
    hints = _hints(function, reader)
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters[1:] if method else parameters:
        reader.read(parameter, hints)
    if method:
        reader.outputs(hints.get("return", type(None)))
    return Signature(
        tuple(reader.parameters),
        reader.injected,
        frozenset(c.__name__ for c in reader.returned),
        (*reader.taken, *reader.returned),
        frozenset(reader.nullable),
        tuple(reader.findings),
    )


def _hints(function: Callable[..., Any], reader: "_Reader") -> dict[str, Any]:
    """The annotations as they are meant; those that cannot be read are told, one by one, and left out."""
    try:
        return get_type_hints(function, include_extras=True)
    except _UNREADABLE:
        hints: dict[str, Any] = {}
    written = inspect.unwrap(function)
    for name, annotation in written.__annotations__.items():
        alone = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints.update(get_type_hints(alone, written.__globals__, include_extras=True))
        except _UNREADABLE as error:
            what = "the result" if name == "return" else f"`{name}`"
            text = (
                f"the type of {what} cannot be read: {error}; define the name at the top level of the module, or import it "
                "there, and not for type checkers alone"
            )
            reader.find("UNRESOLVABLE_PARAMETER", text, None if name == "return" else name)
    return hints


_UNREADABLE = (NameError, SyntaxError, AttributeError, TypeError)


class _Reader:
    """Collects what a signature says, parameter by parameter."""

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._name = name
        self.parameters: list[Parameter] = []
        self.injected: dict[str, Any] = {}
        self.nullable: list[str] = []
        self.taken: list[type[Event]] = []
        self.returned: list[type[Event]] = []
        self.findings: list[Finding] = []

    def find(self, code: str, text: str, parameter: str | None = None) -> None:
        self.findings.append(self._place.finding(code, f"`{self._name}`: {text}", parameter))

    def read(self, parameter: inspect.Parameter, hints: dict[str, Any]) -> None:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            self.find("UNRESOLVABLE_PARAMETER", f"`*{name}` cannot be filled; name each input with its type", name)
            return
        if parameter.kind is parameter.POSITIONAL_ONLY:
            self.find("UNRESOLVABLE_PARAMETER", f"`{name}` has to be given by name; take out the `/` behind it", name)
        if name not in hints:
            if not any(f.parameter == name for f in self.findings):
                text = f"parameter `{name}` has no type; write the event type that it takes"
                self.find("UNRESOLVABLE_PARAMETER", text, name)
            return
        wanted = _input(hints[name])
        if (event := _generic(wanted.other)) is not None:
            self.find("UNRESOLVABLE_PARAMETER", _one_class(f"`{name}`", wanted.other, event), name)
            return
        if not wanted.classes:
            self.injected[name] = wanted.other
            if wanted.nullable or parameter.default is not parameter.empty:
                self.nullable.append(name)
            return
        if wanted.other is not None:
            text = (
                f"`{name}` mixes events with {wanted.other!r}; a parameter takes events, or one thing that is provided"
            )
            self.find("UNRESOLVABLE_PARAMETER", text, name)
        if wanted.mixed:
            types_ = " | ".join(c.__name__ for c in wanted.classes)
            text = f"`{name}` mixes a list of events with a single one; take `list[{types_}]`, or two parameters"
            self.find("UNRESOLVABLE_PARAMETER", text, name)
        self.parameters.append(self._event_parameter(parameter, wanted))
        self.taken.extend(wanted.classes)

    def _event_parameter(self, parameter: inspect.Parameter, wanted: _Input) -> Parameter:
        name, types_ = parameter.name, tuple(c.__name__ for c in wanted.classes)
        if wanted.size is not None:
            self._check_fixed(name, wanted)
            size = wanted.size if isinstance(wanted.size, int) else 0
            return Parameter(name, types_, "fixed_list", size)
        if wanted.many:
            return Parameter(name, types_, "optional_list" if wanted.nullable else "list")
        kind: ParameterKind = "optional" if wanted.nullable else "required"
        if kind == "required" and parameter.default is None:
            kind = "optional"
            text = f"`{name}: {'|'.join(types_)} = None` is taken as optional; write `{types_[0]} | None`"
            self.find("IMPLICIT_OPTIONAL", text, name)
        return Parameter(name, types_, kind)

    def _check_fixed(self, name: str, wanted: _Input) -> None:
        event = wanted.classes[0].__name__
        if isinstance(wanted.size, bool) or not isinstance(wanted.size, int) or wanted.size < 1:
            text = (
                f"`{name}: FixedList({event}, {wanted.size!r})` needs a whole number above zero that is known here; for a "
                f"number that is known at run time take `list[{event}]` with a precondition that counts"
            )
            self.find("FIXED_LIST_SIZE", text, name)
        if wanted.nullable:
            text = (
                f"`{name}`: a FixedList cannot be optional, it is complete or the step waits; take `list[{event}] | None` "
                "with a precondition instead"
            )
            self.find("FIXED_LIST_OPTIONAL", text, name)

    def outputs(self, hint: Any) -> None:
        hint = _yielded(hint)
        for member in _members(hint):
            if member is type(None):
                continue
            inner = get_args(member)[0] if get_origin(member) is list else member
            classes = _classes(inner)
            if (event := _generic(inner)) is not None:
                self.find("INVALID_OUTPUT", _one_class("the result", inner, event))
            elif not classes:
                text = f"it returns {member!r}; a step returns an event, a list of events, or None"
                self.find("INVALID_OUTPUT", text)
            self.returned.extend(classes)


def _input(hint: Any) -> _Input:
    """What an annotation asks for."""
    nullable, many, single, size, other = False, False, False, None, None
    classes: list[type[Event]] = []
    for member in _members(hint):
        if member is type(None):
            nullable = True
            continue
        inner, marked = _unmark(member)
        size = marked if marked is not None else size
        if get_origin(inner) is list:
            found = _classes(get_args(inner)[0])
            many = many or bool(found)
        else:
            found = _classes(inner)
            single = single or bool(found)
        classes.extend(found)
        other = other if found else inner
    return _Input(tuple(classes), many, size, nullable, other, many and single)


def _unmark(hint: Any) -> tuple[Any, Any]:
    """An annotation without its metadata, and the size where it is marked as a fixed list."""
    if get_origin(hint) is not Annotated:
        return hint, None
    marks = [m for m in hint.__metadata__ if isinstance(m, Exactly)]
    return get_args(hint)[0], (marks[0].size if marks else None)


def _members(hint: Any) -> tuple[Any, ...]:
    """The members of a union; metadata that marks no fixed list is dropped."""
    if get_origin(hint) is Annotated and _unmark(hint)[1] is None:
        return _members(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(m for a in get_args(hint) for m in _members(a))
    return (hint,)


def _classes(hint: Any) -> tuple[type[Event], ...]:
    return tuple(m for m in _members(hint) if isinstance(m, type) and issubclass(m, Event))


def _generic(hint: Any) -> type[Event] | None:
    """The class of a generic event that is taken with its type in brackets."""
    origin = get_origin(hint)
    return origin if isinstance(origin, type) and issubclass(origin, Event) else None


def _one_class(what: str, hint: Any, event: type[Event]) -> str:
    shown = f"{event.__name__}[{', '.join(getattr(a, '__name__', repr(a)) for a in get_args(hint))}]"
    return (
        f"{what} is `{shown}`, and a stored event goes by the name of its class; derive one from it, "
        f"`class ...({shown}): ...`, and name that"
    )


def _yielded(hint: Any) -> Any:
    """What a generator yields; its own check says that a step is none."""
    name = getattr(get_origin(hint), "__name__", "")
    return get_args(hint)[0] if name.endswith(("Generator", "Iterator", "Iterable")) else hint
