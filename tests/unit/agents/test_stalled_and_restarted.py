"""A run that cannot move names what holds it; a run that walks again is painted as it walks now."""

import asyncio
from xml.etree import ElementTree

from waybook.agents import Agent, Event, RetryPolicy, RunContext, StartEvent, StopEvent, precondition, step
from waybook.agents.mermaid import mermaid
from waybook.agents.picture import Edge, Node, Picture, picture
from waybook.agents.svg import svg
from waybook.testing.rehearsal import rehearsal


class Began(StartEvent, frozen=True, kw_only=True):
    pass


class Round(Event, frozen=True, kw_only=True):
    number: int = 0


class Ended(StopEvent, frozen=True, kw_only=True):
    pass


@precondition
def open_for_all(first: Round, run: RunContext) -> bool:
    return run.flag("open")


class Overtaken(Agent):
    """Its flag is set after the precondition was asked, and no event comes after that."""

    @step
    async def draw(self, began: Began) -> Round:
        return Round()

    @step
    async def open(self, first: Round, run: RunContext) -> None:
        run.set_flag("open")

    @step(precondition=open_for_all)
    async def end(self, first: Round) -> Ended:
        return Ended()


async def test_a_precondition_that_came_true_too_late_is_named() -> None:
    """It was false when it was asked; that it is true by now moves nothing, and `why` says so."""
    async with rehearsal(Overtaken) as stage:
        run = await stage.start(Began())
        told = stage.why(run)
        (event,) = [p for p in stage.run(run).log if p.event == "Round"]
        text = (
            f"open_for_all was false for Round {event.name} when it came, and is now true; the next Round asks it again"
        )
        assert told.preconditions == {"end": text}
        assert told.next_move == f"end: {text}"


class Bounded(Agent):
    """A loop that nobody ends."""

    @step
    async def begin(self, began: Began) -> Round:
        return Round()

    @step(max_executions=2)
    async def again(self, last: Round) -> Round | Ended:
        return Round(number=last.number + 1)


async def test_a_limit_that_ends_the_way_is_named() -> None:
    """Nothing else is left to do, and the run stays open."""
    async with rehearsal(Bounded) as stage:
        run = await stage.start(Began())
        assert stage.why(run).limits == ("again",)
        assert stage.why(run).next_move == "again was executed as often as it may be (2)"


class Fragile(Agent):
    works = False

    @step
    async def begin(self, began: Began) -> Round:
        return Round()

    @step(retry=RetryPolicy(max_failures=1))
    async def end(self, first: Round) -> Ended:
        if not Fragile.works:
            raise OSError("not yet")
        return Ended()


async def test_a_run_that_walks_again_is_painted_with_its_present_walk() -> None:
    """What an earlier walk returned is no event of this one: no step has seen it."""
    async with rehearsal(Fragile) as stage:
        run = await stage.start(Began())
        Fragile.works = True
        await stage.restart(run)
        drawn = mermaid(picture(Fragile, stage.run(run)))
    assert stage.run(run).walk == 2
    assert 'step_begin -->|"Round"| step_end' in drawn
    assert "class step_begin,step_end,event_Ended completed" in drawn


def test_a_picture_is_markup_whatever_its_texts_hold() -> None:
    """A precondition may be a lambda, which Python names with angle brackets."""
    odd = Picture('a"<b>', (Node("step_a", "step", "a", ('if <lambda> & "x"',)),), (Edge("step_a", "step_a", '<"E">'),))
    assert mermaid(odd).splitlines()[1:] == [
        '    step_a["a<br/><i>if &lt;lambda&gt; &amp; #quot;x#quot;</i>"]',
        '    step_a -->|"&lt;#quot;E#quot;&gt;"| step_a',
    ]
    assert "if <lambda> & " in "".join(ElementTree.fromstring(svg(odd)).itertext())


class Wide(Agent):
    begun = asyncio.Event()
    may_end = asyncio.Event()

    @step
    async def split(self, began: Began) -> list[Round]:
        return [Round(number=n) for n in range(40)]

    @step
    async def work(self, one: Round) -> Ended | None:
        Wide.begun.set()
        await Wide.may_end.wait()
        return None


async def test_many_executions_side_by_side_are_told_with_their_number() -> None:
    """A line that people can read, however wide the run is."""
    async with rehearsal(Wide) as stage:
        Wide.begun, Wide.may_end = asyncio.Event(), asyncio.Event()
        starting = asyncio.create_task(stage.start(Began(), run="wide"))
        await asyncio.wait_for(Wide.begun.wait(), 10)
        assert stage.why("wide").next_move.startswith("running work (attempt 1) ×")
        Wide.may_end.set()
        await starting
