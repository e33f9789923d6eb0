"""A command that kills its workers is convicted alone: run failed, command in DEAD, neighbours undisturbed (claims, rule 9)."""

import asyncio
import signal
from collections import Counter
from functools import partial

import pytest
from tests.crash.five_steps import FIVE_STEPS_TABLE, STEPS, Deadly
from tests.crash.walks import Case, Line, Walk, side_by_side, until, until_async
from tests.crash.worker import AGENTS, Fault

from waybook.engine.hold import why
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.commit import Commit
from waybook.events.engine import ActionAbandoned, CommandConvicted, Transitioned
from waybook.events.subjects import RunKey
from waybook.services.walker.lifecycle import Lifecycle
from waybook.testing.history import completed, events_of, illegalities
from waybook.testing.servers import NatsUnderTest

IN_FLIGHT = 64
LATER = 8
DEATHS = 3
KILLER = "r31"
DEADLY = Deadly(KILLER, "classify", beside=IN_FLIGHT)

STAGES = {
    "commit-decided": Fault("append.before", where="*.inbox.*"),
    "commit-unseen": Fault("append.after", where="*.inbox.*"),
    "before-dead": Fault("bury.before"),
    "in-dead": Fault("bury.after"),
    "before-term": Fault("term.before"),
}


async def one_of_64_kills_its_worker_three_times(walk: Walk) -> None:
    """The first death costs each of the 63 one attempt; the second and third cost nobody else anything."""
    keys = [RunKey(walk.tenant, "inbox", f"r{number}") for number in range(IN_FLIGHT)]
    await asyncio.gather(*(walk.start_of(key) for key in keys))
    gate = walk.gate("classify")
    first = walk.worker(deadly=DEADLY)
    assert await first.ended() == DEADLY.code
    gate.unlink()
    later = [RunKey(walk.tenant, "inbox", f"late{number}") for number in range(LATER)]
    await asyncio.gather(*(walk.start_of(key) for key in later))
    for _ in range(DEATHS - 1):
        assert await walk.worker(deadly=DEADLY).ended() == DEADLY.code
    last = walk.worker(deadly=DEADLY)
    await until_async(walk.is_acknowledged, "every command is gone", 60.0)
    assert await last.stop() == 0

    histories = {key.run: await walk.history(key) for key in (*keys, *later)}
    assert_convicted(histories.pop(KILLER))
    assert await walk.dead() == 1
    for run, history in histories.items():
        assert [c.split(":")[1] for c in completed(history)] == list(STEPS)
        assert "failed" not in states(history)
        assert lost(history) == ([] if run.startswith("late") else [("classify", 1)]), run
    alone = [line for line in walk.journal() if line.pid != first.pid and "late" not in line.execution]
    assert most_at_once(alone, {KILLER}) == 1


def assert_convicted(history: list[Commit]) -> None:
    assert illegalities(FIVE_STEPS_TABLE, history) == []
    assert states(history)[-1] == "failed"
    assert lost(history) == [("classify", 1), ("classify", 2), ("classify", 3)]
    [reason] = [e.reason for _, e in events_of(history) if isinstance(e, CommandConvicted)]
    assert reason == "classify lost its worker 3 times"


def states(history: list[Commit]) -> list[str]:
    return [e.to_state for _, e in events_of(history) if isinstance(e, Transitioned)]


def lost(history: list[Commit]) -> list[tuple[str, int]]:
    """Step and count of every lost attempt."""
    steps = {e.action: e.step for _, e in events_of(history) if hasattr(e, "step") and hasattr(e, "action")}
    abandoned = [e for _, e in events_of(history) if isinstance(e, ActionAbandoned)]
    return [(steps[e.action], e.failures or 0) for e in abandoned]


def most_at_once(lines: list[Line], killers: set[str]) -> int:
    """How many bodies ran side by side; one that kills its process never ends, so its begin counts as its end."""
    running: Counter[int] = Counter()
    most = 0
    for line in lines:
        killed = any(f".{run}/" in line.execution for run in killers) and ":classify:" in line.execution
        running[line.pid] += 1 if line.word == "begun" else -1
        most = max(most, running[line.pid])
        running[line.pid] -= killed and line.word == "begun"
    return most


async def a_conviction_survives_the_death_of_its_judge(stage: str, walk: Walk) -> None:
    """Commit, DEAD and term each may be repeated; DEAD holds the command once."""
    await walk.start()
    for _ in range(DEATHS):
        assert await walk.worker(Fault("step.running", where="classify")).ended() == -signal.SIGKILL
    assert await walk.worker(STAGES[stage]).ended() == -signal.SIGKILL
    last = walk.worker()
    await until_async(walk.is_acknowledged, "the command is gone")
    assert await last.stop() == 0
    assert_convicted(await walk.history())
    assert await walk.dead() == 1
    assert len(await walk.wiring.notes.buried(walk.key)) == 1
    answer = why(AGENTS["five"].engine, await folded(walk))
    assert (answer.hold.kind, answer.next_move) == ("dead command", "classify lost its worker 3 times")


async def folded(walk: Walk) -> Run:
    lifecycle = Lifecycle(walk.wiring.state, Codec(), walk.wiring.clock, "test")
    run = await lifecycle.load(walk.key)
    assert run is not None
    return run


async def what_is_never_decided_is_given_up_by_the_eleventh_process(walk: Walk) -> None:
    """Whoever gets it dies before its first commit: nothing of it is in the log, and the run stays as it is."""
    walk.ack_wait(0.5)
    await walk.start()
    for _ in range(10):
        assert await walk.worker(Fault("append.before", where="*.inbox.*")).ended() == -signal.SIGKILL
    last = walk.worker()
    await until_async(walk.is_acknowledged, "the command is gone")
    await until(lambda: bool(walk.said("command_undelivered")), "the alarm is raised")
    assert await last.stop() == 0
    assert await walk.history() == []
    [dead] = await walk.wiring.notes.buried(walk.key)
    assert (dead.headers["Waybook-Burial"], dead.headers["Nats-Msg-Id"]) == ("undelivered", f"start-{walk.key}")


CASES: dict[str, Case[None]] = {
    "64-in-flight": one_of_64_kills_its_worker_three_times,
    "never-decided": what_is_never_decided_is_given_up_by_the_eleventh_process,
    **{f"judge-dies-{stage}": partial(a_conviction_survives_the_death_of_its_judge, stage) for stage in STAGES},
}


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exception | None]:
    """All cases, run side by side."""
    return asyncio.run(side_by_side(nats_server, tmp_path_factory.mktemp("convicted"), CASES))


@pytest.mark.parametrize("name", CASES)
def test_convictions_hold(outcomes: dict[str, Exception | None], name: str) -> None:
    """Each case is a function of this module, whose name says its rule."""
    error = outcomes[name]
    if error is not None:
        raise error
