"""What models cost: charged once an attempt, to the day, and the gate that it closes."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.unit.scheduler.plant import KEY, START_MS, Plant

from waybook.adapters.memory.clock import ManualClock
from waybook.agents import Agent, Event, StartEvent, StepContext, StopEvent, step
from waybook.agents.prices import Price, Prices
from waybook.engine.aggregates.keys import DAY_MS, budget_key, outcomes_key, sender_key
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.requests import Asked, Learn
from waybook.engine.hooks import Details, ModelCallsUncounted
from waybook.events import engine as e
from waybook.events.codec import Codec
from waybook.events.command import StartPayload
from waybook.events.engine import TokenUsage
from waybook.events.subjects import RunKey
from waybook.inbox.breaker import BreakerSettings
from waybook.services.reading.log_brakes import LogBrakes
from waybook.services.reading.watched import Watched
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.meter import SPEND


class Ask(StartEvent, frozen=True, kw_only=True):
    """`fails`: the step fails after it has used the model. `silent`: the model tells no count."""

    fails: bool = False
    silent: bool = False


class Drafted(Event, frozen=True):
    """Half way."""


class Finished(StopEvent, frozen=True):
    """Done."""


class Spender(Agent):
    """Uses a model in each step."""

    name = "spender"

    @step
    async def draft(self, ask: Ask, context: StepContext) -> Drafted:
        if ask.silent:
            context.count("large", None)
            context.missed(TokenUsage(500, 100, 600))
            return Drafted()
        context.used_model("large", TokenUsage(1_000, 200, 1_200))
        if ask.fails:
            raise ValueError("no use")
        return Drafted()

    @step
    async def check(self, drafted: Drafted, context: StepContext) -> Finished:
        context.used_model("other", TokenUsage(100, 0, 100))
        return Finished()


PRICES = Prices({"large": Price(prompt=2.0, completion=10.0), "*": Price(prompt=1.0)})
BUDGET = budget_key("main", SPEND, START_MS)


def spender(number: int) -> RunKey:
    return RunKey("main", "spender", f"s{number}")


def brakes(plant: Plant, budget: float) -> LogBrakes:
    watched = Watched(plant.state, plant.clock)
    return LogBrakes(watched, plant.clock, "main", settings=BreakerSettings(), budget=budget, shadow=False)


@pytest.fixture
async def plant() -> AsyncIterator[Plant]:
    made = Plant()
    yield made
    await made.close()


async def ask(plant: Plant, number: int, **how: bool) -> None:
    body = msgspec.Raw(msgspec.json.encode(how))
    await plant.give("start", StartPayload(event="Ask", body=body), spender(number))


async def test_every_attempt_is_charged_also_one_that_failed(plant: Plant) -> None:
    """A thousand tokens at 2 and two hundred at 10 a million are 4,000 millionths; the price of `*` is for the rest."""
    await plant.walk(Spender, provides={Prices: PRICES})
    await ask(plant, 1)
    await plant.until(lambda: plant.stands(spender(1)) == "completed")
    assert ledger_of(plant.run(BUDGET)).used == 4_100
    await ask(plant, 2, fails=True)
    await plant.until(lambda: plant.stands(spender(2)) == "failed")
    assert ledger_of(plant.run(BUDGET)).used == 8_100
    facts = [event for event in plant.events(BUDGET) if isinstance(event, e.Spent)]
    assert [(one.run, one.model) for one in facts] == [("s1", "large"), ("s1", "other"), ("s2", "large")]


async def test_what_nobody_counted_is_charged_by_an_estimate_that_says_so(plant: Plant) -> None:
    """The action's own count stays unknown, and a metric of its own counts the answer."""
    told: list[Details] = []
    await plant.walk(Spender, provides={Prices: PRICES}, hook=told.append)
    await ask(plant, 1, silent=True)
    await plant.until(lambda: plant.stands(spender(1)) == "completed")
    assert ledger_of(plant.run(BUDGET)).used == 2_100
    facts = [event for event in plant.events(BUDGET) if isinstance(event, e.Spent)]
    assert [(one.amount, one.estimated) for one in facts] == [(2_000, True), (100, False)]
    run = plant.run(spender(1))
    assert run is not None and next(a.usage for a in run.actions.values() if a.step == "draft") is None
    assert [one for one in told if isinstance(one, ModelCallsUncounted)] == [ModelCallsUncounted("spender", "draft", 1)]


async def test_without_prices_nothing_is_counted(plant: Plant) -> None:
    await plant.walk(Spender)
    await ask(plant, 1)
    await plant.until(lambda: plant.stands(spender(1)) == "completed")
    assert plant.run(BUDGET) is None


async def test_the_budget_ends_with_the_day(plant: Plant) -> None:
    """From the budget on replies are for people; the next day begins at nothing."""
    await plant.walk(Spender, provides={Prices: PRICES})
    await ask(plant, 1)
    await plant.until(lambda: plant.stands(spender(1)) == "completed")
    assert not await brakes(plant, 0.0042).spend_exhausted() and await brakes(plant, 0.0041).spend_exhausted()
    plant.clock.advance(DAY_MS)
    assert not await brakes(plant, 0.0041).spend_exhausted()


async def told(plant: Plant, key: RunKey, *facts: e.OutcomeCounted | e.SenderTrustSet) -> None:
    lifecycle = Lifecycle(plant.state, Codec(), plant.clock, "test")
    run = await lifecycle.load(key)
    await lifecycle.change(key, run, [Asked(Learn(fact)) for fact in facts])


async def test_the_breaker_is_read_off_the_counts_of_the_log(plant: Plant) -> None:
    """Bounces of yesterday and of today are seen together; what is new is seen at the next look."""
    looked = brakes(plant, 1.0)
    assert await looked.open_breaker() is None and await looked.trial(START_MS) is None
    assert isinstance(plant.clock, ManualClock)
    for before in (DAY_MS // 2, 0):
        at = START_MS - before
        counted = [e.OutcomeCounted(kind="sent", run=f"r{before}-{n}", at=at) for n in range(10)]
        bad = [e.OutcomeCounted(kind="bounced", run=f"r{before}-{n}", at=at) for n in range(2)]
        await told(plant, outcomes_key("main", at), *counted, *bad)
    assert "4 bounced" in str(await looked.open_breaker())
    plant.clock.advance(3_600_000)
    trial = await looked.trial(plant.clock.now())
    assert trial is not None and trial.cap == 3 and await looked.open_breaker() is None


async def test_trust_that_was_taken_back_names_its_reason(plant: Plant) -> None:
    looked = brakes(plant, 1.0)
    assert await looked.distrust("ann@x.example", "support") is None
    fact = e.SenderTrustSet(category="support", trusted=False, by="engine", reason="a reply bounced", run=KEY.run)
    await told(plant, sender_key("main", "ann@x.example"), fact)
    assert "a reply bounced" in str(await looked.distrust("Ann@x.example", "support"))
    assert await looked.distrust("ann@x.example", "billing") is None
