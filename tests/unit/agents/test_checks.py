"""What `check` says of an agent before its first run: code, level, step, parameter, file, line, and the way out."""

# mypy: disable-error-code="empty-body"

import inspect
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
import pytest
from tests.unit.agents.broken import (
    BareNone,
    Broken,
    Clean,
    ConfigLies,
    Go,
    NamedKey,
    NestedLies,
    Smuggles,
    Undecided,
)

from waybook.agents import (
    Agent,
    AgentConfig,
    DefinitionError,
    DisplayEvent,
    Event,
    Exactly,
    ExceptionEvent,
    ExternalEvent,
    FixedList,
    RunContext,
    StartEvent,
    StepConfig,
    StopEvent,
    check,
    delegate,
    precondition,
    step,
)
from waybook.agents.definition import define

__all__ = ["Annotated", "AsyncIterator", "Exactly", "StepConfig"]


class Done(StopEvent, frozen=True, kw_only=True):
    pass


class A(ExternalEvent, frozen=True, kw_only=True):
    pass


class B(ExternalEvent, frozen=True, kw_only=True):
    pass


class Shown(DisplayEvent, frozen=True, kw_only=True):
    pass


class Never(Event, frozen=True, kw_only=True):
    pass


class Odd(Event, frozen=True, kw_only=True):
    pass


class Even(Event, frozen=True, kw_only=True):
    pass


class OtherConfig(AgentConfig, frozen=True, kw_only=True):
    pass


class Session:
    pass


class StopAsInput(Agent):
    @step
    async def begin(self, go: Go) -> Done: ...
    @step
    async def culprit(self, it: Done) -> Done: ...


class ExceptionAsInput(Agent):
    @step
    async def begin(self, go: Go) -> Done: ...
    @step
    async def culprit(self, it: ExceptionEvent) -> Done: ...


class DisplayAsInput(Agent):
    @step
    async def begin(self, go: Go) -> Done: ...
    @step
    async def culprit(self, it: Shown) -> Done: ...


class NeverProduced(Agent):
    @step
    async def culprit(self, go: Go, it: Never) -> Done: ...


class Circle(Agent):
    @step
    async def begin(self, go: Go) -> Done: ...
    @step
    async def culprit(self, it: Odd) -> Even: ...
    @step
    async def other(self, even: Even) -> Odd: ...


class NoEvent(Agent):
    @step
    async def begin(self, go: Go) -> Done: ...
    @step
    async def culprit(self, run: RunContext) -> Done: ...


class Unresolvable(Agent):
    @step
    async def culprit(self, go: Go, it: Session) -> Done: ...


class WrongConfig(Agent):
    @step
    async def culprit(self, go: Go, it: OtherConfig) -> Done: ...


@precondition
async def peek(b: B) -> bool:
    return True


class ForeignPrecondition(Agent):
    @step(precondition=peek)
    async def culprit(self, go: Go) -> Done: ...


class SizeZero(Agent):
    @step
    async def begin(self, go: Go) -> None: ...
    @step
    async def culprit(self, it: FixedList(A, 0)) -> Done: ...  # type: ignore[valid-type]


class OptionalFixed(Agent):
    @step
    async def begin(self, go: Go) -> None: ...
    @step
    async def culprit(self, it: Annotated[list[A], Exactly(2)] | None) -> Done: ...


class TwiceTheSame(Agent):
    @step
    async def begin(self, go: Go) -> None: ...
    @step
    async def culprit(self, left: A, it: A) -> Done: ...


class Generator(Agent):
    @step
    async def culprit(self, go: Go) -> AsyncIterator[Done]:
        yield Done()


class NotAsync(Agent):
    @step
    def culprit(self, go: Go) -> Done:
        return Done()


class Nameless(Agent):
    @step
    async def culprit(self, go: Go) -> Done:
        delegate(" ", go)
        return Done()


class TwoOfAName(Agent):
    @step
    async def culprit(self, go: Go) -> Done: ...
    @step  # type: ignore[no-redef]
    async def culprit(self, a: A) -> Done: ...  # noqa: F811


ERRORS = [
    ("STOP_AS_INPUT", StopAsInput),
    ("EXCEPTION_AS_INPUT", ExceptionAsInput),
    ("DISPLAY_AS_INPUT", DisplayAsInput),
    ("INPUT_NEVER_PRODUCED", NeverProduced),
    ("STEP_UNREACHABLE", Circle),
    ("STEP_WITHOUT_EVENT", NoEvent),
    ("UNRESOLVABLE_PARAMETER", Unresolvable),
    ("CONFIG_TYPE_MISMATCH", WrongConfig),
    ("PRECONDITION_NOT_INJECTABLE", ForeignPrecondition),
    ("FIXED_LIST_SIZE", SizeZero),
    ("FIXED_LIST_OPTIONAL", OptionalFixed),
    ("SAME_TYPE_TWICE", TwiceTheSame),
    ("GENERATOR_STEP", Generator),
    ("STEP_NOT_ASYNC", NotAsync),
    ("INCOMPLETE_AGENT_REFERENCE", Nameless),
    ("DUPLICATE_STEP_NAME", TwoOfAName),
]


@pytest.mark.parametrize(("code", "agent"), ERRORS, ids=[code for code, _ in ERRORS])
def test_an_error_names_its_place(code: str, agent: type[Agent]) -> None:
    """One error, at the step's line of this file, which names the step and the parameter that is to blame."""
    (finding,) = [f for f in check(agent) if f.level == "error" and f.step == "culprit"]
    assert finding.code == code
    assert finding.file == __file__
    lines, first = inspect.getsourcelines(agent)
    assert "culprit" in "".join(lines[finding.line - first - 1 : finding.line - first + 3])
    assert "`culprit" in finding.message
    if finding.parameter is not None:
        assert f"`{finding.parameter}" in finding.message or f"({finding.parameter}" in finding.message


@pytest.mark.parametrize(
    "agent", [agent for code, agent in ERRORS if code != "UNRESOLVABLE_PARAMETER"], ids=lambda agent: agent.__name__
)
def test_errors_refuse_registration(agent: type[Agent]) -> None:
    """`define` raises with all of them; what else is provided is known to the walker only."""
    with pytest.raises(DefinitionError) as raised:
        define(agent)
    assert raised.value.findings == tuple(f for f in check(agent) if f.level == "error")


def test_an_exact_message() -> None:
    """The whole of it, as it is read."""
    (finding,) = check(StopAsInput)
    line = StopAsInput.culprit.__code__.co_firstlineno
    assert str(finding) == (
        f"{__file__}:{line}: error STOP_AS_INPUT: `culprit` takes the stop event `Done` as `it`. The run is over when "
        "that event is stored, so the step can never run. Take a non-stop event and stop in a later step."
    )


def test_every_error_is_reported_at_once() -> None:
    """Nobody has to run lint five times."""
    assert {f.code for f in check(Broken)} == {"STOP_AS_INPUT", "SAME_TYPE_TWICE", "INPUT_NEVER_PRODUCED"}


def test_an_agent_without_a_start_or_a_stop() -> None:
    """No run can begin: an error. No run can end: a warning, unless its lifecycle ends otherwise."""

    class Endless(Agent):
        @step
        async def work(self, go: Go) -> Odd: ...

    class Beginless(Agent):
        @step
        async def work(self, a: A) -> Done: ...

    assert [(f.code, f.level) for f in check(Endless)] == [("NO_STOP", "warning")]
    assert [(f.code, f.level) for f in check(Beginless)] == [("NO_START", "error")]


def test_two_classes_of_one_name() -> None:
    """A stored event goes by its class name."""
    again = msgspec.defstruct("Never", [], bases=(StartEvent,), frozen=True, kw_only=True)

    class Doubled(Agent):
        accepts = (again,)

        @step
        async def work(self, go: Go) -> Never: ...

        @step
        async def end(self, never: Never) -> Done: ...

    assert [f.code for f in check(Doubled)] == ["DUPLICATE_EVENT_NAME"]


def test_a_step_replaced_in_a_subclass_is_no_duplicate() -> None:
    """Only a step that nobody meant to replace is an error."""

    class Parent(Agent):
        @step
        async def work(self, go: Go) -> Done: ...

    class Child(Parent):
        @step
        async def work(self, go: Go) -> Done: ...

    class First:
        @step
        async def work(self, go: Go) -> Done: ...

    class Second:
        @step
        async def work(self, go: Go) -> Done: ...

    class Mixed(First, Second, Agent):
        pass

    assert check(Child) == ()
    assert [f.code for f in check(Mixed)] == ["DUPLICATE_STEP_NAME"]


def test_what_the_installation_provides_can_be_asked_for() -> None:
    """By `uses`, or by what is given to `check`; and a configuration by a base class of it."""

    class Uses(Agent):
        uses = (Session,)
        config = OtherConfig

        @step
        async def work(self, go: Go, session: Session, config: OtherConfig, any_config: AgentConfig) -> Done: ...

    assert check(Uses) == ()
    assert [f.code for f in check(Uses, ())] == ["UNRESOLVABLE_PARAMETER"]
    assert check(Unresolvable, (Session,)) == ()


@pytest.mark.parametrize(
    ("agent", "codes"),
    [
        (Clean, []),
        (ConfigLies, ["CONFIG_LIE", "OPTIONAL_WITHOUT_PRECONDITION"]),
        (NestedLies, ["CONFIG_LIE", "OPTIONAL_WITHOUT_PRECONDITION"]),
        (Smuggles, ["CONTEXT_SMUGGLE", "CONTEXT_SMUGGLE"]),
        (NamedKey, ["CONTEXT_SMUGGLE"]),
        (BareNone, ["IMPLICIT_OPTIONAL", "OPTIONAL_WITHOUT_PRECONDITION"]),
        (Undecided, ["DOUBLE_DIP", "LIST_FEEDS_STOP"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_warnings(agent: type[Agent], codes: list[str]) -> None:
    """Warnings keep nobody from running."""
    assert sorted(f.code for f in check(agent)) == codes
    define(agent)


def test_a_smuggle_says_who_writes_and_who_reads() -> None:
    """Through names of the module, aliases and preconditions."""
    texts = [f.message for f in check(Smuggles)]
    assert any("`query` is written from an event (`go`) in `first` and read in `second`" in text for text in texts)
    assert any("`limit`" in text and "`reached of third`" in text for text in texts)


class Unlabelled(Event, frozen=True, kw_only=True):
    BRANCH = "nam"

    name: str


def test_a_branch_is_labelled_by_a_field_that_is_there() -> None:
    """The message names the field that is meant, and those that there are."""

    class Forks(Agent):
        @step
        async def split(self, go: Go) -> list[Unlabelled]: ...

        @step
        async def work(self, one: Unlabelled) -> Done: ...

    (finding,) = check(Forks)
    assert (finding.code, finding.level) == ("BRANCH_WITHOUT_FIELD", "error")
    assert "`Unlabelled.BRANCH` names `nam`" in finding.message and "one of name" in finding.message
    with pytest.raises(DefinitionError, match="BRANCH_WITHOUT_FIELD"):
        define(Forks)
