"""Whatever an agent looks like and however its work is mixed: its log holds the executions that the log makes due."""

import logging
from random import Random

import pytest
from tests.conformance.dispatcher import oracle
from tests.conformance.dispatcher.publish import play
from tests.conformance.dispatcher.random_flows import random_case, with_a_kill
from tests.conformance.dispatcher.world import MAIN, World, opened
from tests.conformance.pipeline.backends import in_memory
from tests.conformance.pipeline.history import History

from waybook.agents.checks import check
from waybook.engine import dispatch
from waybook.events import engine as e

SEEDS = 16


async def walked(seed: int, *, stops: bool, workers: int, kill: bool = False) -> tuple[World, History] | None:
    """The world and the run's history when all is at rest; None for an agent that is refused."""
    case, chance = random_case(seed, stops=stops), Random(seed)
    case = with_a_kill(case, seed) if kill else case
    async with in_memory(chance) as backend, opened(case, backend, workers=workers, chance=chance) as world:
        if any(finding.level == "error" for finding in check(world.built[MAIN].agent, ())):
            return None
        world.define()
        await play(world)
        return world, await world.history(world.key)


def differences(world: World, history: History) -> list[str]:
    """What the oracle and the log say differently; nothing after the commit that holds the stop is judged by it."""
    entries = list(history.entries())
    log = [oracle.Stored(x.name, x.event.event, x.version) for x in entries if isinstance(x.event, e.EventPublished)]
    stop = next((event.version for event in log if event.type == "Done"), None)
    before = [event for event in log if stop is None or event.version < stop]
    wanted = oracle.due(world.flows[MAIN], before)
    names = {event.name for event in before}
    began = [oracle.Execution(b.step, b.trigger, tuple((p["name"], b.bindings.get(p["name"])) for p in params))
             for b in history.events(e.StepBegan) if b.trigger in names and b.attempt == 1
             for params in [next(s["params"] for s in world.flows[MAIN].steps if s["name"] == b.step)]]  # fmt: skip
    found = [f"not begun: {x}" for x in wanted if x not in began] + [f"not due: {x}" for x in began if x not in wanted]
    found += [f"begun twice: {x}" for x in set(began) if began.count(x) > 1]
    if stop is not None:
        found += [f"stored after the stop: {event}" for event in log if event.version > stop]
    else:
        completed = len(history.events(e.StepCompleted))
        found += [f"{completed} of {len(began)} were completed"] if completed != len(began) else []
    return found


@pytest.mark.parametrize("stops", [False, True], ids=["open", "stopping"])
@pytest.mark.parametrize("workers", [1, 3])
async def test_the_log_holds_exactly_what_it_makes_due(stops: bool, workers: int) -> None:
    """Sixteen agents by chance, deliveries and results shuffled."""
    logging.getLogger("waybook").setLevel(logging.CRITICAL)
    judged = 0
    for seed in range(SEEDS):
        seen = await walked(seed, stops=stops, workers=workers)
        if seen is not None:
            judged += 1
            assert (seed, differences(*seen)) == (seed, [])
    assert judged > SEEDS // 2


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_killed_worker_changes_nothing_of_it(workers: int) -> None:
    """An execution that was cut off has further attempts, and no other one begins or is left out."""
    logging.getLogger("waybook").setLevel(logging.CRITICAL)
    again = 0
    for seed in range(SEEDS):
        seen = await walked(seed, stops=seed % 2 == 0, workers=workers, kill=True)
        if seen is not None:
            again += any(began.attempt > 1 for began in seen[1].events(e.StepBegan))
            assert (seed, differences(*seen)) == (seed, [])
    assert again > SEEDS // 8


async def test_a_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dispatcher that binds the oldest event instead of the latest differs from the oracle."""
    latest = dispatch._latest
    monkeypatch.setattr(dispatch, "_latest", lambda types, run, until: latest(types, run, min(until, 3)))
    found = [
        seed for seed in range(SEEDS) if (seen := await walked(seed, stops=False, workers=1)) and differences(*seen)
    ]
    assert found
