"""Small agents that are played in memory."""

import asyncio
from typing import Annotated, ClassVar

from waybook.agents import (
    Agent,
    AgentConfig,
    AgentRequest,
    AgentResponse,
    Displayer,
    DisplayEvent,
    Event,
    Exactly,
    ExternalEvent,
    RequestEvent,
    RunContext,
    StartEvent,
    StepConfig,
    StepContext,
    StopEvent,
    ThreadContext,
    UserIdentity,
    delegate,
    precondition,
    step,
)


class Go(StartEvent, frozen=True, kw_only=True):
    pass


class Number(ExternalEvent, frozen=True, kw_only=True):
    value: int


class Note(Event, frozen=True, kw_only=True):
    pass


class Question(RequestEvent, frozen=True, kw_only=True):
    text: str = "?"


class Told(StopEvent, frozen=True, kw_only=True):
    text: str = ""


class Chunk(DisplayEvent, frozen=True, kw_only=True):
    text: str = ""


@precondition
async def divides(number: Number) -> bool:
    return number.value / Divides.by > 0


class Divides(Agent):
    """Its precondition raises while `by` is 0."""

    by: ClassVar[int] = 1

    @step
    async def begin(self, go: Go) -> None: ...

    @step(precondition=divides)
    async def divide(self, number: Number) -> None: ...


@precondition
async def waits(go: Go) -> bool:
    await asyncio.sleep(0)
    return True


class Impatient(Agent):
    """Its precondition waits."""

    @step(precondition=waits)
    async def begin(self, go: Go) -> Told:
        return Told()


@precondition
def meddles(run: RunContext) -> bool:
    run.increment("asked")
    return True


class Meddles(Agent):
    """Its precondition writes."""

    @step(precondition=meddles)
    async def begin(self, go: Go) -> Told:
        return Told()


class Seat(Event, frozen=True, kw_only=True):
    """One that wants a number."""

    name: str


class Taken(Event, frozen=True, kw_only=True):
    """The number that it took."""

    number: int


class Takers(Agent):
    """Four executions side by side, each of which takes the next number."""

    @step
    async def call(self, go: Go) -> list[Seat]:
        return [Seat(name=name) for name in "abcd"]

    @step
    async def take(self, seat: Seat, run: RunContext) -> Taken:
        number = run.count("next")
        await asyncio.sleep(0)
        assert run.compare_and_set("next", run.get("next"), number + 1)
        return Taken(number=number)

    @step
    async def end(self, taken: Annotated[list[Taken], Exactly(4)]) -> Told:
        return Told()


class Size(AgentConfig, frozen=True, kw_only=True):
    size: int


class Extra(StepConfig, frozen=True, kw_only=True):
    more: int


class Configured(Agent):
    """Asks for what there is."""

    config = Size

    @step(config=Extra(more=1))
    async def tell(
        self, go: Go, size: Size, extra: Extra, thread: ThreadContext, user: UserIdentity | None = None
    ) -> Told:
        times = thread.increment("times")
        return Told(text=f"{size.size} {size.size + extra.more} {user.name if user else 'nobody'} {times}")


class Shows(Agent):
    """Shows pieces; fails after the first one, once."""

    @step
    async def show(self, go: Go, displayer: Displayer, context: StepContext) -> Told:
        await displayer.show(Chunk(text="a"))
        if context.attempt == 1:
            raise RuntimeError("broken off")
        await displayer.show(Chunk(text="b"))
        return Told()


class Slow(Agent):
    """One step is still at work when the other one ends the run."""

    may_end: ClassVar[asyncio.Event]
    ended: ClassVar[list[str]]

    @step
    async def work(self, go: Go) -> Note:
        try:
            await Slow.may_end.wait()
        except asyncio.CancelledError:
            Slow.ended.append("cancelled")
            raise
        Slow.ended.append("undisturbed")
        return Note()

    @step
    async def end(self, go: Go) -> Told:
        return Told()


class Asks(Agent):
    """Asks a person, and goes on asking nothing."""

    @step
    async def ask(self, go: Go) -> Question:
        return Question()

    @step
    async def hear(self, number: Number) -> None: ...


@precondition
async def closed(go: Go) -> bool:
    return False


class Stalls(Agent):
    """Comes to nothing."""

    @step
    async def begin(self, go: Go) -> None: ...

    @step(precondition=closed)
    async def held(self, go: Go) -> Told:
        return Told()

    @step
    async def never(self, number: Number) -> Told:
        return Told()


@precondition
async def enough(numbers: list[Number], note: Note | None) -> bool:
    return len(numbers) > 1


class Everything(Agent):
    """Something of all that a picture shows."""

    @step
    async def ask(self, go: Go) -> list[AgentRequest | Note]:
        return [delegate("other", go), Note()]

    @step(precondition=enough, max_executions=2)
    async def collect(self, numbers: list[Number], note: Note | None = None) -> Question:
        return Question()

    @step
    async def end(self, answer: AgentResponse) -> Told:
        return Told()


class Session:
    pass


class Needs(Agent):
    """Asks for what nobody provides."""

    @step
    async def needs(self, go: Go, session: Session) -> Told:
        return Told()


class Planned(Event, frozen=True, kw_only=True):
    count: int


class Place(Event, frozen=True, kw_only=True):
    """Begins a branch, named after the place."""

    BRANCH: ClassVar[str | None] = "name"

    name: str


class Weather(Event, frozen=True, kw_only=True):
    text: str


@precondition
def all_places(weather: list[Weather], planned: Planned) -> bool:
    return len(weather) == planned.count


class Branches(Agent):
    """Asks for the weather at some places, side by side."""

    broken: ClassVar[set[str]] = set()

    @step
    async def plan(self, go: Go) -> list[Planned | Place]:
        return [Planned(count=2), Place(name="Bern"), Place(name="Chur")]

    @step
    async def ask(self, place: Place, context: StepContext) -> Weather:
        if place.name in Branches.broken:
            raise ValueError(f"no word from {place.name}")
        return Weather(text=f"{context.branch}: sun")

    @step(precondition=all_places)
    async def tell(self, weather: list[Weather], planned: Planned, context: StepContext) -> Told:
        return Told(text="; ".join(sorted(one.text for one in weather)) + f" ({context.branch})")
