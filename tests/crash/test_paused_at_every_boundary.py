"""A worker paused past its lease at each boundary: another finishes the walk, and the first, continued, adds nothing."""

import asyncio
import signal
import time
from functools import partial

import msgspec
import pytest
from tests.crash.boundaries import boundaries
from tests.crash.walks import Line, Walk, assert_walked_once, side_by_side, until
from tests.crash.worker import Fault

from waybook.events.commit import Commit
from waybook.testing.servers import NatsUnderTest

CASES = boundaries("pause")


class Outcome(msgspec.Struct):
    """What a case left behind: the history when the second worker had finished, and after the first went on."""

    finished: list[Commit]
    afterwards: list[Commit]
    begun_afterwards: list[Line]
    joined: int
    commands_left: int
    exit_codes: tuple[int, int]
    walk: Walk


async def stand_still(fault: Fault, walk: Walk) -> Outcome:
    """One worker stops itself, a second finishes, the first is continued and then stopped gracefully."""
    await walk.start()
    first = walk.worker(fault)
    await first.paused()
    second = walk.worker()
    finished = await walk.until_done()
    before = len(walk.journal())
    first.signal(signal.SIGCONT)
    # It says so when it still holds the lease by then; otherwise it is done with it.
    noticed_by = time.monotonic() + 0.6
    await until(lambda: bool(walk.said("claims_lost")) or time.monotonic() > noticed_by, "it goes on")
    exit_codes = (await first.stop(), await second.stop())
    begun = [line for line in walk.journal()[before:] if line.word == "begun"]
    return Outcome(
        finished, await walk.history(), begun, await walk.joined(), await walk.commands_left(), exit_codes, walk
    )


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome | Exception]:
    """All cases, run side by side."""
    cases = {name: partial(stand_still, fault) for name, fault in CASES.items()}
    return asyncio.run(side_by_side(nats_server, tmp_path_factory.mktemp("still"), cases))


@pytest.mark.parametrize("name", CASES)
def test_the_second_finishes_and_the_first_adds_nothing(outcomes: dict[str, Outcome | Exception], name: str) -> None:
    outcome = outcomes[name]
    if isinstance(outcome, Exception):
        raise outcome
    assert_walked_once(outcome.walk, outcome.finished)
    assert outcome.afterwards == outcome.finished
    # A body that was begun before the pause cannot be stopped by it; nothing else begins.
    assert len(outcome.begun_afterwards) == (CASES[name].boundary == "step.begun")
    assert (outcome.joined, outcome.commands_left, outcome.exit_codes) == (1, 0, (0, 0))
