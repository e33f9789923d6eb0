"""What an author says beside the signatures: options, settings, fields; each mistake is told before the first run."""

# mypy: disable-error-code="empty-body, untyped-decorator, arg-type, assignment, misc, valid-type"

from typing import Any

import pytest

from waybook.agents import (
    Agent,
    AgentConfig,
    DefinitionError,
    Event,
    ExternalEvent,
    RequestEvent,
    RetryPolicy,
    StartEvent,
    StopEvent,
    check,
    step,
)
from waybook.agents.definition import define


class Opened(StartEvent, frozen=True, kw_only=True):
    pass


class Said(ExternalEvent, frozen=True, kw_only=True):
    pass


class Closed(StopEvent, frozen=True, kw_only=True):
    pass


class Opaque(Event, frozen=True, kw_only=True):
    text: str
    handle: object


class Hasty(RequestEvent, frozen=True, kw_only=True):
    WITHIN_S = 0


class Odd(AgentConfig, frozen=True, kw_only=True):
    client: object


WRONG_OPTIONS: list[dict[str, Any]] = [
    {"max_executions": 0}, {"max_executions": "3"}, {"max_executions": 1.5}, {"max_executions": True},
    {"deadline_s": 0}, {"deadline_s": -1}, {"deadline_s": "10"}, {"deadline_s": float("nan")},
    {"deadline_s": float("inf")}, {"retry": 3}, {"retry": None}, {"retry": RetryPolicy(max_failures=0)},
    {"retry": RetryPolicy(grid_ms=-1)}, {"stop_on_error": "no"}, {"thread": True}, {"config": {}}, {"depends": "helper"},
    {"precondition": "ready"},
]  # fmt: skip


@pytest.mark.parametrize("options", WRONG_OPTIONS, ids=str)
def test_an_option_of_a_wrong_kind_refuses_the_agent(options: dict[str, Any]) -> None:
    """The message names the step, the option, its value, and what it needs; nothing is left to the first run."""

    class Wrong(Agent):
        @step(**options)
        async def work(self, opened: Opened) -> Closed: ...

    (finding,) = check(Wrong)
    ((name, value),) = options.items()
    assert (finding.code, finding.level, finding.step, finding.file) == ("INVALID_OPTION", "error", "work", __file__)
    assert finding.line == Wrong.work.__code__.co_firstlineno
    assert f"`@step({name}={value!r})` of `work` needs " in finding.message
    with pytest.raises(DefinitionError, match="INVALID_OPTION"):
        define(Wrong)


def test_an_option_that_there_is_not_is_told_with_the_one_that_is_meant() -> None:
    """And with all that there are."""
    with pytest.raises(
        DefinitionError, match="no option `deadline`; is `deadline_s` meant\\? It takes retry, deadline_s"
    ):
        step(deadline=3)  # type: ignore[call-overload]


def test_the_limit_of_executions_goes_by_both_names() -> None:
    """`max_executions_per_run` says the same as `max_executions`."""

    class Limited(Agent):
        @step(max_executions_per_run=2)
        async def work(self, opened: Opened) -> Closed: ...

    assert define(Limited).engine.steps["work"].max_executions == 2


def test_a_step_is_a_method() -> None:
    """One that is none would be passed over, or would get the agent in place of its event."""
    kinds: tuple[Any, ...] = (staticmethod, classmethod)
    for kind in kinds:
        with pytest.raises(DefinitionError, match=f"`work` is a {kind.__name__}; a step is a method"):

            @step
            @kind
            async def work(opened: Opened) -> Closed: ...

        class Wrapped(Agent):
            @step
            async def begin(self, opened: Opened) -> Closed: ...

            @kind
            @step
            async def work(self, opened: Opened) -> Closed: ...

        found = [f for f in check(Wrapped) if f.code == "STEP_WITHOUT_SELF"]
        assert f"`work` is a {kind.__name__}" in found[0].message

    class Selfless(Agent):
        @step
        async def begin(opened: Opened, said: Said) -> Closed: ...

    assert [(f.step, f.parameter) for f in check(Selfless) if f.code == "STEP_WITHOUT_SELF"] == [("begin", "opened")]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("name", "No Name!"), ("run_deadline_s", -5), ("run_deadline_s", "60"), ("config", dict), ("config", Odd),
        ("uses", [1]), ("config", AgentConfig()), ("accepts", (int,)), ("accepts", Said), ("uses", int), ("table", None),
        ("schedules", ("* * * * *",)),
    ],
    ids=str,
)  # fmt: skip
def test_a_setting_of_a_wrong_kind_refuses_the_agent(setting: str, value: Any) -> None:
    """The message names the agent, the setting and its value."""

    class Wrong(Agent):
        @step
        async def work(self, opened: Opened) -> Closed: ...

    setattr(Wrong, setting, value)
    found = [f for f in check(Wrong) if f.code == "INVALID_OPTION"]
    assert [f.message.partition(" needs ")[0] for f in found] == [f"`Wrong.{setting} = {value!r}`"]


def test_an_event_that_cannot_be_stored_is_told_with_its_field() -> None:
    """Before a run is begun that would fail at it."""

    class Keeps(Agent):
        @step
        async def work(self, opened: Opened) -> Opaque | Hasty: ...

        @step
        async def end(self, opaque: Opaque, said: Said) -> Closed: ...

    texts = [f.message for f in check(Keeps) if f.code == "INVALID_EVENT"]
    assert texts[0].startswith("`Opaque` cannot be stored: field `handle: object` has no form in JSON")
    assert texts[1].startswith("`Hasty.WITHIN_S = 0` needs a number of seconds above zero")


def test_a_list_or_a_single_event_is_no_type_of_a_parameter() -> None:
    """Nobody could say when it is complete; the message says what to write."""

    class Mixes(Agent):
        @step
        async def work(self, opened: Opened, said: list[Said] | Closed, many: tuple[Said, ...]) -> Closed: ...

    texts = [f.message for f in check(Mixes) if f.code == "UNRESOLVABLE_PARAMETER"]
    assert any("`said` mixes a list of events with a single one; take `list[Said | Closed]`" in text for text in texts)
    assert any("`work(many: tuple[Said, ...])`" in text and "taken as `list[Said]`" in text for text in texts)


def test_annotations_that_cannot_be_read_are_told_alone() -> None:
    """Not that the agent has no start, which only follows from it."""

    class Unread(Agent):
        @step
        async def work(self, opened: "Opened |") -> Closed: ...

        @step
        async def give(self, said: Said, /) -> Closed: ...

    found = [(f.code, f.step) for f in check(Unread)]
    assert found == [("UNRESOLVABLE_PARAMETER", "work"), ("UNRESOLVABLE_PARAMETER", "give")]


def test_a_result_without_a_type_is_told() -> None:
    """A step that says no type returns nothing; one that returns something would fail whenever it runs."""

    class Silent(Agent):
        @step
        async def work(self, opened: Opened):  # type: ignore[no-untyped-def]
            def inner() -> int:
                return 1

            return Closed() if inner() else None

        @step
        async def rest(self, said: Said):  # type: ignore[no-untyped-def]
            return None

        @step
        async def end(self, said: Said) -> Closed: ...

    (finding,) = check(Silent)
    assert (finding.code, finding.step) == ("INVALID_OUTPUT", "work") and "`-> Event`" in finding.message
