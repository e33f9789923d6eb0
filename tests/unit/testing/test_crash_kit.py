"""The crash kit finds what an agent loses or does twice, and nothing in agents that keep the rules."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from waybook.agents import Agent, Event, ExternalEvent, StartEvent, StopEvent, step
from waybook.agents.effects import Deadline, EffectAdapter, EffectCall, Effects
from waybook.testing.kit import CrashKit, Disturbance, OtherSide, Report, ViolationsFound, signal

GUIDE = Path(__file__).parents[3] / "docs" / "crash-kit.md"


class Go(StartEvent, frozen=True, kw_only=True):
    """The run begins."""


class Half(Event, frozen=True, kw_only=True):
    """The first step is done."""


class Yes(ExternalEvent, frozen=True, kw_only=True):
    """A person's word."""


class Sent(StopEvent, frozen=True, kw_only=True):
    """The run is over."""


class Good(Agent):
    """Sends through `effects`, when a person said so."""

    name = "good"

    @step
    async def first(self, go: Go) -> Half:
        return Half()

    @step
    async def send(self, half: Half, yes: Yes, effects: Effects) -> Sent:
        await effects.run("mail", {"to": "ann"})
        return Sent()


class Bypassing(Agent):
    """Sends by itself."""

    name = "bypassing"

    @step
    async def first(self, go: Go) -> Half:
        return Half()

    @step
    async def send(self, half: Half, side: OtherSide) -> Sent:
        await side.call(EffectCall("r", "mail", "mail", {}, "k"), Deadline(1000))
        return Sent()


class Memory(dict[str, str]):
    """What a process keeps for itself."""


class Remembering(Agent):
    """Hands something on in the process's memory."""

    name = "remembering"

    @step
    async def first(self, go: Go, memory: Memory) -> Half:
        memory["text"] = "hello"
        return Half()

    @step
    async def second(self, half: Half, memory: Memory) -> Sent | None:
        return Sent() if "text" in memory else None


def good(**side: Any) -> CrashKit:
    return CrashKit([Good], start=Go(), then=[signal(Yes())], effects=lambda: {"mail": OtherSide(**side)})


def test_an_agent_that_keeps_the_rules_survives_a_death_at_every_boundary() -> None:
    report = good().check()
    report.expect_none()
    assert report.state == "completed"
    assert report.walks == len(report.boundaries) + 1
    assert any(place.startswith("call.after mail") for place in report.boundaries)
    assert report.held == 0


def test_a_side_effect_of_which_nobody_can_tell_is_held_for_a_person_and_not_repeated() -> None:
    report = good(can_find=False).check()
    report.expect_none()
    assert report.held > 0


def test_a_lost_answer_is_learned_from_the_other_side() -> None:
    good(answers_lost=1).check().expect_none()


@pytest.mark.parametrize("seed", [1, 2])
def test_late_and_shuffled_deliveries_change_nothing(seed: int) -> None:
    good().check(Disturbance(seed=seed, late=0.4, shuffled=True)).expect_none()


def test_an_agent_that_sends_by_itself_is_found_to_send_twice() -> None:
    sides: list[OtherSide] = []

    def effects() -> Mapping[str, EffectAdapter]:
        sides.append(OtherSide())
        return {"mail": sides[-1]}

    kit = CrashKit([Bypassing], start=Go(), effects=effects, provides=lambda: {OtherSide: sides[-1]})
    assert_found(kit.check(), "arrived 2 times")


def test_an_agent_that_hands_on_in_memory_is_found_to_end_elsewhere() -> None:
    kit = CrashKit([Remembering], start=Go(), provides=lambda: {Memory: Memory()})
    assert_found(kit.check(), "undisturbed it is completed")


def assert_found(report: Report, text: str) -> None:
    with pytest.raises(ViolationsFound, match=text):
        report.expect_none()


def test_the_guides_program_runs_as_it_stands() -> None:
    """What `docs/crash-kit.md` shows are tests that pass."""
    (code,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {"__name__": "letter"}
    exec(compile(code, str(GUIDE), "exec"), module)  # noqa: S102
    shown = [function for name, function in module.items() if name.startswith("test_")]
    assert len(shown) == 2
    for function in shown:
        function()
