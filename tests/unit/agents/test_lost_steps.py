"""What was meant as a step and is none is told; decorators and files of any kind hide no place and no name."""

# mypy: disable-error-code="empty-body, untyped-decorator, arg-type, assignment, misc, valid-type, no-untyped-def, no-untyped-call, no-redef, operator, type-arg, override"

import functools
from typing import Any, Generic, TypeVar

import pytest

from waybook.agents import (
    Agent,
    AgentConfig,
    DefinitionError,
    Event,
    RunContext,
    StartEvent,
    StopEvent,
    check,
    precondition,
    step,
)

T = TypeVar("T")


class Set(StartEvent, frozen=True, kw_only=True):
    text: str = ""


class Seen(Event, frozen=True, kw_only=True):
    pass


class Sum(Event, Generic[T], frozen=True, kw_only=True):
    value: T


class Over(StopEvent, frozen=True, kw_only=True):
    pass


class Strict(AgentConfig, frozen=True, kw_only=True):
    on: bool = False


def bare(function):
    """A decorator that forgets what it wraps."""

    async def inner(*args, **kwargs):
        return await function(*args, **kwargs)

    return inner


def wrapping(function):
    """A decorator as it should be."""

    @functools.wraps(function)
    async def inner(*args, **kwargs):
        return await function(*args, **kwargs)

    return inner


def blocking(function):
    """A decorator that makes a plain function of a coroutine's."""

    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


class First(Agent):
    @step
    async def begin(self, start: Set) -> Over: ...


class UnderABareDecorator(First):
    @bare
    @step
    async def lost(self, start: Set) -> Over: ...


class InAProperty(First):
    @property
    @step
    async def lost(self, start: Set) -> Over: ...  # noqa: PLR0206


class Mother(First):
    @step
    async def lost(self, start: Set) -> Over: ...


class Daughter(Mother):
    async def lost(self, start: Set) -> Over: ...


@pytest.mark.parametrize(
    ("agent", "way_out"),
    [
        (UnderABareDecorator, "put @step on top, or let the decorator use functools.wraps"),
        (InAProperty, "write `async def lost(self, ...)` with @step alone"),
        (Daughter, "mark it with @step, or write `lost = None` to leave the step out"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_step_whose_mark_is_hidden_is_told(agent: type[Agent], way_out: str) -> None:
    """It would be passed over without a word."""
    (finding,) = check(agent)
    assert (finding.code, finding.level, finding.step) == ("STEP_LOST", "error", "lost")
    assert finding.message.startswith("`lost` never runs: ")
    assert way_out in finding.message
    assert finding.file == __file__


def test_a_step_may_be_left_out_replaced_and_wrapped() -> None:
    """On purpose; and a method that helps is no step."""

    class Spare(Mother):
        lost = None

        async def helper(self, start: Set) -> Over: ...

    class Wrapped(First):
        @wrapping
        @step
        async def seen(self, start: Set) -> Over: ...

        seen = wrapping(seen)

    assert check(Spare) == ()
    assert check(Wrapped) == ()


def test_a_step_that_something_else_replaces_in_its_class_is_told_once() -> None:
    """A plain method of the same name hides it like a second step does."""

    class Hides(First):
        @step
        async def lost(self, start: Set) -> Over: ...

        def lost(self) -> None: ...  # noqa: F811

    (finding,) = check(Hides)
    assert finding.code == "DUPLICATE_STEP_NAME"
    assert "something of the same name that is no step" in finding.message


@pytest.mark.parametrize(
    "thing", [functools.partial(print), property(print), print, 7], ids=["partial", "property", "builtin", "number"]
)
def test_a_mark_on_what_is_no_function_is_refused(thing: Any) -> None:
    """Where it is written, and not by an agent that lacks a step."""
    with pytest.raises(DefinitionError, match="`@step` marks a function, and got "):
        step(thing)


def test_a_finding_under_a_decorator_names_the_line_of_the_step() -> None:
    """And not that of the decorator; one that takes away `async` is told as such."""

    class Decorated(First):
        @step
        @wrapping
        async def late(self, seen: Seen) -> Over: ...

        @step
        @blocking
        async def blocked(self, start: Set) -> Over: ...

    blocked, late = sorted(check(Decorated), key=lambda finding: finding.code, reverse=True)
    assert (late.code, late.line) == ("INPUT_NEVER_PRODUCED", Decorated.late.__wrapped__.__code__.co_firstlineno)
    assert blocked.code == "STEP_NOT_ASYNC"
    assert "a decorator makes `blocked` a plain function" in blocked.message


def test_a_precondition_that_is_no_function_is_told() -> None:
    """An object that can be called has no signature of its own."""

    class Ready:
        def __call__(self, start: Set) -> bool:
            return True

    class Asks(Agent):
        @step(precondition=Ready())
        async def begin(self, start: Set) -> Over: ...

    assert [f.code for f in check(Asks)] == ["INVALID_OPTION"]


def test_a_type_that_cannot_be_read_is_told_with_its_parameter() -> None:
    """And nothing that only follows from it."""

    class Local(Event, frozen=True, kw_only=True):
        pass

    class Unread(Agent):
        @step
        async def begin(self, start: Set) -> "Local": ...

        @step
        async def end(self, local: "Local", start: Set) -> Over: ...

    assert [(f.code, f.step, f.parameter) for f in check(Unread)] == [
        ("UNRESOLVABLE_PARAMETER", "begin", None),
        ("UNRESOLVABLE_PARAMETER", "end", "local"),
    ]


def test_a_generic_event_is_told_with_the_way_out() -> None:
    """A stored event goes by the name of its class, which brackets do not change; a class of its own may fill them."""

    class Numbers(Sum[int], frozen=True, kw_only=True):
        pass

    class Adds(Agent):
        @step
        async def begin(self, start: Set) -> Sum[int]: ...

        @step
        async def end(self, total: Sum[int], start: Set) -> Over: ...

    class AddsNumbers(Agent):
        @step
        async def begin(self, start: Set) -> Numbers: ...

        @step
        async def end(self, total: Numbers) -> Over: ...

    found = check(Adds)
    assert [f.code for f in found] == ["INVALID_OUTPUT", "UNRESOLVABLE_PARAMETER"]
    assert all("derive one from it, `class ...(Sum[int]): ...`" in f.message for f in found)
    assert check(AddsNumbers) == ()


def test_a_step_that_takes_only_what_never_comes_is_told() -> None:
    """Optional or not: with nothing to trigger it, it never runs."""

    class Waits(First):
        @step
        async def never(self, seen: Seen | None = None) -> Over: ...

    assert "INPUT_NEVER_PRODUCED" in {f.code for f in check(Waits)}


class Smuggler(Agent):
    KEY = "one"

    @step
    async def write(self, start: Set, run: RunContext) -> Seen:
        context = run
        context.set(self.KEY, start.text)
        run.compare_and_set("two", None, start.text)
        match start:
            case Set(text=words):
                run.set("three", words)
        run.set("four", "long" if len(start.text) > 9 else "short")
        run.set("five", "some" if start.text else "none")
        return Seen()

    @step
    async def read(self, seen: Seen, run: RunContext) -> Over:
        words = [run.get("one"), run.get("two"), run.get("three"), run.get("four"), run.get("five")]
        assert words
        return Over()


def test_a_smuggle_is_followed_through_aliases_patterns_and_keys_of_the_class() -> None:
    """Which of two words is kept is control flow, and no data."""
    found = [f for f in check(Smuggler) if f.code == "CONTEXT_SMUGGLE"]
    assert [f.message.split("`")[1] for f in found] == ["one", "two", "three"]


@precondition
def waits_for_seen(seen: Seen | None, strict: Strict) -> bool:
    return seen is not None or not strict.on


class Guards(Agent):
    config = Strict

    @step
    async def begin(self, start: Set) -> Seen: ...

    @step
    async def lies(self, start: Set, strict: Strict, seen: Seen | None = None) -> Over | None:
        if not strict.on:
            return Over()
        if seen is None:
            return None
        return Over()

    @step(precondition=waits_for_seen)
    async def waits(self, start: Set, strict: Strict, seen: Seen | None = None) -> Over | None:
        if not strict.on:
            return Over()
        if seen is None:
            return None
        return Over()


def test_a_config_lie_in_two_guards_is_seen() -> None:
    """The first one leaves by the configuration, the second one for want of the event."""
    assert [f.step for f in check(Guards) if f.code == "CONFIG_LIE"] == ["lies"]
