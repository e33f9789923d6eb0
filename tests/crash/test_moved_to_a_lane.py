"""A worker of another version meets an open run, and may die while it moves the run's command to its lane (DESIGN 3)."""

import asyncio
import signal
from functools import partial

import pytest
from tests.crash.walks import Case, Walk, assert_walked_once, side_by_side, until_async
from tests.crash.worker import AGENTS, Fault, lane

from waybook.testing.history import completed
from waybook.testing.servers import NatsUnderTest

HASH = AGENTS["five"].engine.hash
MOMENTS = {
    "not-moved": Fault("publish.before"),
    "moved-unseen": Fault("publish.after"),
    "not-acknowledged": Fault("ack.before"),
    "moved": None,
}


async def a_command_moves_to_its_lane_once_and_is_finished_there(moment: str, walk: Walk) -> None:
    await walk.start()
    first = walk.worker(Fault("step.running", where="classify"))
    assert await first.ended() == -signal.SIGKILL
    fault = MOMENTS[moment]
    if fault is not None:
        assert await walk.worker(fault, version="six").ended() == -signal.SIGKILL
    other = walk.worker(version="six")
    await until_async(partial(is_moved, walk), "the command is in its lane, and there alone")
    queue = walk.wiring.commands
    assert not await queue.is_taken(lane(walk.tenant, "five").name)
    before = await walk.history()

    last = walk.worker()
    history = await walk.until_done()
    assert_walked_once(walk, history)
    assert {commit.definition for commit in history} == {HASH}
    assert (await other.stop(), await last.stop()) == (0, 0)
    assert not any(line.pid == other.pid for line in walk.journal()), "the other version ran a step"
    again = [c for line in walk.journal() if line.pid == last.pid for c in completed(before) if c in line.execution]
    assert again == []


async def is_moved(walk: Walk) -> bool:
    return await walk.commands_left() == await walk.commands_left(HASH) == 1


CASES: dict[str, Case[None]] = {
    moment: partial(a_command_moves_to_its_lane_once_and_is_finished_there, moment) for moment in MOMENTS
}


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exception | None]:
    """All cases, run side by side."""
    return asyncio.run(side_by_side(nats_server, tmp_path_factory.mktemp("moved"), CASES))


@pytest.mark.parametrize("moment", CASES)
def test_a_command_moves_to_its_lane_once(outcomes: dict[str, Exception | None], moment: str) -> None:
    """Whatever the moment at which the worker that moves it dies."""
    error = outcomes[moment]
    if error is not None:
        raise error
