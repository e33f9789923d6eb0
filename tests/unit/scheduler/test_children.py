"""Work handed to another agent goes over the relay: the child's start, its end back to the caller, the deadline, a cancel."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.scheduler.flaky import Side
from tests.unit.scheduler.plant import KEY, Plant

from waybook.agents import Agent, NonRetryable, StartEvent, StopEvent, step
from waybook.agents.delegation import AgentFailure, AgentRequest, AgentResponse, delegate
from waybook.events.engine import ChildRequested
from waybook.events.headers import PARENT
from waybook.events.subjects import RunKey, state_subject

HOUR_S = 3_600.0


class Go(StartEvent, frozen=True, kw_only=True):
    """The caller begins."""


class Look(StartEvent, frozen=True, kw_only=True):
    """What the other agent is asked for."""

    what: str


class Found(StopEvent, frozen=True, kw_only=True):
    """The other agent's answer."""

    text: str


class Reported(StopEvent, frozen=True, kw_only=True):
    """The caller's end."""

    text: str


class Caller(Agent):
    """Hands a look-up on and reports what comes back."""

    name = "flaky"  # the run that a plant starts

    @step
    async def ask(self, go: Go) -> AgentRequest:
        return delegate("finder", Look(what="x"), timeout_s=HOUR_S)

    @step
    async def report(self, answer: AgentResponse) -> Reported:
        return Reported(text=str(answer.text))

    @step
    async def give_up(self, failure: AgentFailure) -> Reported:
        return Reported(text=failure.message)


class Finder(Agent):
    """Looks things up, as the side answers."""

    name = "finder"

    @step
    async def find(self, look: Look, side: Side) -> Found:
        side.ask(look.what)
        await side.gate()
        return Found(text=f"found {look.what}")


class Never(Side):
    """No answer ever comes; `asked` says that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def gate(self) -> None:
        self.asked.set()
        await asyncio.Event().wait()


def refused(call: int) -> None:
    raise NonRetryable("there is no such thing")


@pytest.fixture(params=["answers", "fails", "never"])
async def plant(request: pytest.FixtureRequest) -> AsyncIterator[Plant]:
    side = {"answers": Side(), "fails": Side(refused), "never": Never()}[request.param]
    made = Plant(lambda clock: side)
    await made.walk(Caller, Finder)
    made.schedule()
    await made.start()
    await made.until(lambda: made.side.calls["ask"] == 1)
    yield made
    await made.close()


def child_of(plant: Plant) -> RunKey:
    [asked] = [event for event in plant.events() if isinstance(event, ChildRequested)]
    return RunKey(KEY.tenant, asked.agent, asked.run)


def said(plant: Plant) -> str:
    run = plant.run()
    assert run is not None
    return bytes(run.log[-1].payload).decode()


@pytest.mark.parametrize("plant", ["answers"], indirect=True)
async def test_the_stop_event_of_a_child_comes_back_to_the_caller(plant: Plant) -> None:
    await plant.until(lambda: plant.stands() == "completed")
    assert "found x" in said(plant)
    child = child_of(plant)
    assert plant.stands(child) == "completed"
    named = {r.headers.get(PARENT) for r in plant.state.records if r.subject == state_subject(child)}
    [asked] = [event for event in plant.events() if isinstance(event, ChildRequested)]
    assert named == {f"flaky/r1/{asked.request}"}
    assert all(PARENT not in r.headers for r in plant.state.records if r.subject == state_subject(KEY))
    await plant.until(lambda: not plant.commands.waiting and not plant.notices.behind)
    assert not await plant.timers.standing()  # the deadline was taken back


@pytest.mark.parametrize("plant", ["fails"], indirect=True)
async def test_a_child_that_is_out_of_attempts_is_a_failure_of_the_request(plant: Plant) -> None:
    await plant.until(lambda: plant.stands() == "completed")
    assert "no such thing" in said(plant)


@pytest.mark.parametrize("plant", ["never"], indirect=True)
async def test_a_deadline_answers_when_nobody_else_does(plant: Plant) -> None:
    await plant.until(lambda: plant.stands() == "completed", pass_ms=60_000)
    assert "deadline" in said(plant)


@pytest.mark.parametrize("plant", ["never"], indirect=True)
async def test_a_cancelled_caller_cancels_what_it_asked_for(plant: Plant) -> None:
    await plant.give("cancel", {"reason": "enough"})
    await plant.until(lambda: plant.stands() == "cancelled")
    child = child_of(plant)
    await plant.until(lambda: plant.stands(child) == "cancelled")


class Elsewhere(Caller):
    """Hands on to an agent that nobody carries, without a deadline of its own."""

    @step
    async def ask(self, go: Go) -> AgentRequest:
        return delegate("finder", Look(what="x"))


class Shortly(Elsewhere):
    """Hands on what the other agent cannot read."""

    @step
    async def ask(self, go: Go) -> AgentRequest:
        return delegate("finder", Go())


@pytest.fixture
async def alone() -> AsyncIterator[Plant]:
    made = Plant(lambda clock: Side())
    made.schedule()
    yield made
    await made.close()


async def test_who_asks_an_agent_that_nobody_carries_is_told_after_two_minutes(alone: Plant) -> None:
    """Without that the request would be waited for without end; the answer names what the installation carries."""
    await alone.walk(Elsewhere)
    began = alone.clock.now()
    await alone.start()
    await alone.until(lambda: alone.stands() == "completed", pass_ms=500)
    assert "no agent 'finder' here; this installation carries flaky" in said(alone)
    assert 100_000 < alone.clock.now() - began < 200_000
    assert not alone.commands.waiting


async def test_an_agent_that_is_deployed_a_little_later_takes_up_what_waits_for_it(alone: Plant) -> None:
    first = await alone.walk(Elsewhere)
    await alone.start()
    await alone.until(lambda: alone.stands() == "running" and bool(alone.commands.waiting), pass_ms=1_000)
    alone.clock.advance(20_000)
    await first.stop()
    await alone.walk(Elsewhere, Finder)
    await alone.until(lambda: alone.stands() == "completed", pass_ms=1_000)
    assert "found x" in said(alone)


async def test_a_start_that_the_other_agent_cannot_read_is_a_failure_of_the_request(alone: Plant) -> None:
    """It stands in DEAD, and who asked goes on at once."""
    await alone.walk(Shortly, Finder)
    await alone.start()
    await alone.until(lambda: alone.stands() == "completed")
    assert "agent finder does not know the event Go" in said(alone)
