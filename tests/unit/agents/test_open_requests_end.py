"""Nobody works on, and nobody answers, a request that its run no longer waits for."""

import pytest

from waybook.agents import (
    Agent,
    AgentFailure,
    AgentRequest,
    AgentResponse,
    ExternalEvent,
    RequestEvent,
    StartEvent,
    StopEvent,
    Unanswered,
    delegate,
    step,
)
from waybook.testing.rehearsal import Refused, Stage, rehearsal

HOUR_S = 3_600.0


class Go(StartEvent, frozen=True, kw_only=True):
    pass


class Look(StartEvent, frozen=True, kw_only=True):
    pass


class MayI(RequestEvent, frozen=True, kw_only=True):
    WITHIN_S = HOUR_S


class Said(ExternalEvent, frozen=True, kw_only=True):
    yes: bool = True


class Found(StopEvent, frozen=True, kw_only=True):
    pass


class Ended(StopEvent, frozen=True, kw_only=True):
    how: str


class Finder(Agent):
    """Asks a person, who does not answer."""

    @step
    async def ask(self, look: Look) -> MayI:
        return MayI()

    @step
    async def found(self, said: Said) -> Found:
        return Found()

    @step
    async def nothing(self, unanswered: Unanswered) -> None: ...


class Caller(Agent):
    """Hands on, and waits for an hour or less."""

    @step
    async def hand_on(self, go: Go) -> AgentRequest:
        return delegate("finder", Look(), timeout_s=60)

    @step
    async def report(self, answer: AgentResponse) -> Ended:
        return Ended(how="answered")

    @step
    async def note(self, failure: AgentFailure) -> None: ...


class Hasty(Caller):
    """Its own deadline is before that of the other agent."""

    run_deadline_s = 30


class Asker(Agent):
    """Asks before it does anything."""

    @step
    async def ask(self, go: Go) -> MayI:
        return MayI()

    @step
    async def act(self, said: Said) -> Ended:
        return Ended(how="yes" if said.yes else "no")

    @step
    async def note(self, unanswered: Unanswered) -> None: ...


def children(stage: Stage, run: str) -> list[str]:
    """The runs that were asked for, in order."""
    return [child.run for child in stage.run(run).children.values()]


async def test_a_request_that_was_not_answered_in_time_ends_the_run_that_works_on_it() -> None:
    """Its answer would be passed over; it is told why, and takes no person's time any more."""
    async with rehearsal(Caller, Finder) as stage:
        run = await stage.start(Go())
        [child] = children(stage, run)
        assert stage.run(child, "finder").state == "running"
        await stage.pass_time(61)
        ended = stage.run(child, "finder")
        assert ended.outcome == "cancelled"
        assert ended.reason is not None and "finder did not answer request 2.1 by its deadline" in ended.reason
        assert [type(e) for e in stage.events(run, AgentFailure)] == [AgentFailure]


async def test_a_run_that_ends_at_its_deadline_takes_along_who_works_for_it() -> None:
    async with rehearsal(Hasty, Finder) as stage:
        run = await stage.start(Go())
        [child] = children(stage, run)
        await stage.pass_time(31)
        assert stage.run(run).outcome == "failed"
        assert stage.run(child, "finder").outcome == "cancelled"


async def test_a_restart_asks_anew_and_lets_go_of_what_was_asked_before() -> None:
    """The first child is cancelled, its deadline is taken back, and only the second one's answer counts."""
    async with rehearsal(Caller, Finder) as stage:
        run = await stage.start(Go())
        await stage.pass_time(30)
        await stage.restart(run)
        first, second = children(stage, run)
        assert stage.run(first, "finder").outcome == "cancelled"
        assert stage.run(second, "finder").state == "running"
        await stage.pass_time(31)  # the first deadline
        assert stage.events(run, AgentFailure) == []
        await stage.pass_time(30)
        assert len(stage.events(run, AgentFailure)) == 1


async def test_an_answer_stands_for_its_own_question_only() -> None:
    """After a restart the question is asked anew: a yes to the one before decides nothing, and comes too late as well."""
    async with rehearsal(Asker) as stage:
        run = await stage.start(Go())
        [old] = stage.requests(run)
        await stage.restart(run)
        [new] = stage.requests(run)
        assert old.name != new.name
        with pytest.raises(Refused, match="was asked before the run was restarted") as refused:
            await stage.signal(run, Said(), request=old.name)
        assert refused.value.reason == "stale"
        assert not stage.run(run).ended
        await stage.signal(run, Said(yes=False), request=new.name)
        assert stage.result(run) == Ended(how="no")


class Twice(Agent):
    """Does not end with an answer."""

    @step
    async def ask(self, go: Go) -> MayI:
        return MayI()

    @step
    async def act(self, said: Said) -> None: ...

    @step
    async def note(self, unanswered: Unanswered) -> None: ...


async def test_an_answer_that_was_given_is_not_seen_by_a_walk_that_asks_anew() -> None:
    """It was given to another question; a step would act on it before anybody has looked at the new one."""
    async with rehearsal(Twice) as stage:
        run = await stage.start(Go())
        await stage.signal(run, Said(), request=stage.requests(run)[0].name)
        assert stage.steps(run) == ["ask", "act"]
        await stage.restart(run)
        assert stage.steps(run) == ["ask", "act", "ask"]
        assert len(stage.requests(run)) == 1
        armed = [timer.about for timer in stage.run(run).timers.values()]
        assert armed == [f"request:{stage.requests(run)[0].name}"]


async def test_an_answer_to_a_question_that_is_kept_is_kept_with_it() -> None:
    async with rehearsal(Twice) as stage:
        run = await stage.start(Go())
        await stage.signal(run, Said(), request=stage.requests(run)[0].name)
        asked = next(a.id for a in stage.run(run).actions.values() if a.step == "ask")
        await stage.restart(run, keep=[asked])
        assert (stage.steps(run)[2:], len(stage.events(run, MayI))) == (["ask", "act"], 1)
        assert stage.requests(run) == ()
