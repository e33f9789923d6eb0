"""Whatever a step returns or raises: its run says what is wrong, at the step that did it, and the walker goes on."""

import re
import sys
from typing import Any, ClassVar

import pytest

from waybook.agents import Agent, DisplayEvent, Event, RetryAfter, RunContext, StartEvent, StopEvent, precondition, step
from waybook.agents.errors import MOST_WAIT_S
from waybook.testing.rehearsal import rehearsal


class Given(StartEvent, frozen=True, kw_only=True):
    pass


class Amount(Event, frozen=True, kw_only=True):
    cents: int


class Foreign(Event, frozen=True, kw_only=True):
    pass


class Banner(DisplayEvent, frozen=True, kw_only=True):
    pass


class Paid(StopEvent, frozen=True, kw_only=True):
    cents: int = 0


class Panic(BaseException):
    """As libraries in Rust raise it: no Exception."""


class Mute(Exception):
    """An error that cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def leave() -> Any:
    sys.exit("cannot read the file \udcff")


def raises(error: BaseException) -> Any:
    raise error


class Pays(Agent):
    """Does in `count` what a test wants."""

    does: ClassVar[Any] = None

    @step
    async def count(self, given: Given, run: RunContext) -> Amount | list[Amount]:
        made: Any = Pays.does(run)
        return made  # type: ignore[no-any-return]

    @step
    async def pay(self, amount: Amount) -> Paid:
        return Paid(cents=amount.cents)


BAD = {
    "a field of another type": (lambda run: Amount(cents="many"), "Amount.*Expected `int`, got `str` - at `\\$.cents`"),  # type: ignore[arg-type]
    "a number that JSON has not": (lambda run: Amount(cents=float("nan")), "Amount"),  # type: ignore[arg-type]
    "an event of another step's": (lambda run: Foreign(), "count returned Foreign; it declares Amount"),
    "a display event": (lambda run: Banner(), "count returned Banner; it declares Amount"),
    "no event": (lambda run: 5, "count returned int; it declares Amount"),
    "a class": (lambda run: Amount, "count returned StructMeta; it declares Amount"),
    "a list in a list": (lambda run: [[Amount(cents=1)]], "count returned list; it declares Amount"),
    "a context with half a letter": (lambda run: [Amount(cents=1)] if run.set("k", "\ud800") else [], "surrogates"),
    "sys.exit": (lambda run: leave(), "SystemExit: cannot read the file \\?"),
    "a panic": (lambda run: raises(Panic("out of memory")), "out of memory"),
    "an error that has no text": (lambda run: raises(Mute()), "Mute, whose text cannot be made: RuntimeError"),
    "an error with half a letter": (lambda run: raises(ValueError("no \udc80 file")), "no \\? file"),
    "a wait without an end": (lambda run: raises(RetryAfter(float("nan"))), "RetryAfter takes 0 to"),
}


@pytest.mark.parametrize("does", BAD)
async def test_a_bad_result_fails_its_own_step(does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is `failed` with the step and the reason; nobody else's step is blamed, and a new run of it goes on."""
    what, says = BAD[does]
    monkeypatch.setattr(Pays, "does", what)
    async with rehearsal(Pays) as stage:
        run = await stage.start(Given())
        assert stage.state(run) == "failed"
        error = stage.why(run).error
        assert error is not None and error.startswith("count: ")
        assert re.search(says, error), error
        assert stage.events(run, Amount) == []
        monkeypatch.setattr(Pays, "does", lambda run: Amount(cents=3))
        assert stage.result(await stage.start(Given())) == Paid(cents=3)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), MOST_WAIT_S + 1])
def test_nobody_waits_for_a_time_that_is_none(seconds: float) -> None:
    """The message names the bounds."""
    with pytest.raises(ValueError, match="0 to 31622400 seconds"):
        RetryAfter(seconds)


@precondition
async def leaves(given: Given) -> bool:
    raise SystemExit("no \udc80 word")


class Gated(Agent):
    """Its precondition ends the process, as it thinks."""

    @step(precondition=leaves)
    async def pay(self, given: Given) -> Paid:
        return Paid()


async def test_a_precondition_ends_no_process() -> None:
    """It fails its run, with its name."""
    async with rehearsal(Gated) as stage:
        run = await stage.start(Given())
        assert stage.state(run) == "failed"
        assert "leaves" in str(stage.why(run).error) or "pay" in str(stage.why(run).error)
