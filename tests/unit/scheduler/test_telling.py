"""What runs have each other learn, and starts that wait because their sender sends too fast."""

from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest
from tests.unit.scheduler.plant import KEY, Fuse, Killed, Plant

from waybook.agents import Agent, Event, ExternalEvent, StartEvent, step
from waybook.engine.aggregates.keys import sender_key
from waybook.engine.aggregates.sender import Rate, sender_of
from waybook.engine.definition import Row, Table
from waybook.engine.inputs import World
from waybook.engine.run import Run
from waybook.engine.telling import Telling
from waybook.events import engine as e
from waybook.events.command import StartPayload
from waybook.events.subjects import RunKey

ANN = "Ann@X.example"


class Posted(StartEvent, frozen=True, kw_only=True):
    """`about`: the run that it concerns."""

    about: str = ""


class Opened(Event, frozen=True):
    """It was looked at."""


class Heard(ExternalEvent, frozen=True, kw_only=True):
    """Another run tells something."""

    what: str


def is_note(run: Run, event: Posted, world: World) -> bool:
    return bool(event.about)


def is_blocked(run: Run, event: Posted, world: World) -> bool:
    return "sender_blocked" in run.flags


def tell(run: Run, event: Posted, now: int) -> Sequence[Telling]:
    return (Telling("post", event.about, "Heard", {"what": "a note"}),)


def is_news(run: Run, event: Heard, world: World) -> bool:
    return event.what not in run.fields.get("heard", ())


def heard(run: Run, event: Heard) -> dict[str, list[str]]:
    return {"heard": [*run.fields.get("heard", ()), event.what]}


def distrust(run: Run, event: Heard, now: int) -> Sequence[Telling]:
    sender = sender_key("main", ANN)
    fact = e.SenderTrustSet(category="c", trusted=False, by="engine", run=run.key.run)
    return (Telling(sender.agent, sender.run, "SenderTrustSet", fact),)


class Post(Agent):
    """A letter is opened and put away; a note is about a letter, and told to its run."""

    name = "post"
    accepts = (Heard,)
    table = Table(
        initial="new",
        states=frozenset({"new", "open", "away"}),
        terminal=frozenset({"away"}),
        rows=(
            Row("blocked", "new", "Posted", "away", is_blocked),
            Row("note", "new", "Posted", "away", is_note, tells=tell),
            Row("letter", "new", "Posted", "open"),
            Row("opened", "open", "Opened", "away"),
            Row("heard", "*", "Heard", None, is_news, heard, tells=distrust),
        ),
        facts=frozenset({"Heard"}),
    )

    @step
    async def look(self, letter: Posted) -> Opened:
        return Opened()


def letter(number: int) -> RunKey:
    return RunKey(KEY.tenant, "post", f"letter{number}")


async def post(plant: Plant, key: RunKey, *, about: str = "", sender: str | None = None, live: bool = True) -> None:
    body = msgspec.Raw(msgspec.json.encode({"about": about}))
    await plant.give("start", StartPayload(event="Posted", body=body, sender=sender, live=live), key)


@pytest.fixture
async def plant() -> AsyncIterator[Plant]:
    made = Plant()
    yield made
    await made.close()


async def test_a_run_that_has_ended_learns_a_fact_once_and_begins_nothing(plant: Plant) -> None:
    """A second telling of the same changes nothing; what follows is told on, to a system aggregate too."""
    await plant.walk(Post)
    plant.schedule()
    await post(plant, letter(1))
    await plant.until(lambda: plant.stands(letter(1)) == "away")
    for number in (2, 3):
        await post(plant, letter(number), about="letter1")
    sender = sender_key("main", ANN)
    await plant.until(lambda: "c" in sender_of(plant.run(sender)).distrust)
    await plant.until(lambda: not plant.commands.waiting and not plant.notices.behind)
    run = plant.run(letter(1))
    assert run is not None and run.fields["heard"] == ["a note"] and run.state == "away" and len(run.actions) == 1
    assert sum(isinstance(event, e.RunTold) for event in plant.events(letter(1))) == 1
    assert len(plant.events(sender)) == 1


async def test_what_no_run_takes_is_refused_and_changes_nothing(plant: Plant) -> None:
    """A report may name any run, also one that never was."""
    await plant.walk(Post)
    plant.schedule()
    await post(plant, letter(2), about="nobody")
    await plant.until(lambda: plant.stands(letter(2)) == "away")
    await plant.until(lambda: not plant.commands.waiting and not plant.notices.behind, pass_ms=1_000)
    assert plant.run(RunKey(KEY.tenant, "post", "nobody")) is None


async def test_a_scheduler_that_dies_at_any_step_loses_no_telling_and_doubles_none() -> None:
    """Whatever it did, the next one goes on."""
    at = 1
    while True:
        plant = Plant()
        await plant.walk(Post)
        fuse = Fuse(at)
        task = plant.schedule(fuse=fuse)
        await post(plant, letter(1))
        await plant.until(lambda: plant.stands(letter(1)) == "away")  # noqa: B023
        await post(plant, letter(2), about="letter1")
        await plant.until(lambda: task.done() or "c" in sender_of(plant.run(sender_key("main", ANN))).distrust)  # noqa: B023
        blown = fuse.blown
        if blown:
            with pytest.raises(Killed):
                await task
            plant.schedule()
        await plant.until(lambda: "c" in sender_of(plant.run(sender_key("main", ANN))).distrust)  # noqa: B023
        run = plant.run(letter(1))
        assert run is not None and run.fields["heard"] == ["a note"]
        await plant.close()
        if not blown:
            return
        at += 1


async def test_letters_of_one_sender_that_come_too_fast_are_kept_and_begin_in_their_time(plant: Plant) -> None:
    """All are stored at once, with the hold in their log; others' letters and files that a person named never wait."""
    await plant.walk(Post, arrivals=Rate(per_minute=10, burst=2))
    plant.schedule()
    for number in range(4):
        await post(plant, letter(number), sender=ANN)
    await post(plant, letter(8), sender="bob@x.example")
    await post(plant, letter(9), sender=ANN, live=False)
    await plant.until(lambda: all(plant.run(letter(n)) is not None for n in (0, 1, 2, 3, 8, 9)))
    await plant.until(lambda: [plant.stands(letter(n)) for n in (0, 1, 8, 9)] == ["away"] * 4)
    assert [plant.stands(letter(n)) for n in (2, 3)] == ["new"] * 2
    for n in (2, 3):
        await plant.give("continue", None, letter(n))  # nobody pushes them in
    await plant.until(lambda: not plant.commands.waiting)
    assert [plant.stands(letter(n)) for n in (2, 3)] == ["new"] * 2
    await plant.until(lambda: [plant.stands(letter(n)) for n in (2, 3)] == ["away"] * 2, pass_ms=500)


async def test_a_block_of_a_sender_is_read_when_the_next_letter_comes(plant: Plant) -> None:
    """The flag says so to the agent's table; lifted, letters are read again."""
    await plant.walk(Post)
    sender = sender_key("main", ANN)
    await plant.give("block", {"on": True, "reason": "spam"}, sender)
    await plant.until(lambda: sender_of(plant.run(sender)).block.on)
    await post(plant, letter(1), sender=ANN.lower(), live=False)
    await plant.until(lambda: plant.stands(letter(1)) == "away")
    run = plant.run(letter(1))
    assert run is not None and run.flags == ("sender_blocked",) and not run.actions
