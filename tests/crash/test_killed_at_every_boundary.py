"""A worker killed at each boundary of the five-step walk: another process finishes it, and nothing runs twice."""

import asyncio
import signal
from functools import partial

import msgspec
import pytest
from tests.crash.boundaries import boundaries
from tests.crash.walks import Line, Walk, assert_walked_once, side_by_side
from tests.crash.worker import Fault

from waybook.events.commit import Commit
from waybook.testing.history import completed
from waybook.testing.servers import NatsUnderTest

KILLS = boundaries("kill")
# The built-in agent's bodies know nothing of faults.
MAIL_KILLS = {f"mail-{name}": fault for name, fault in KILLS.items() if not fault.boundary.startswith("step.")}
CASES = KILLS | MAIL_KILLS


class Outcome(msgspec.Struct):
    """What a case left behind. `before` is the history at the first worker's death."""

    exit_code: int
    before: list[Commit]
    after: list[Commit]
    joined: int
    commands_left: int
    second: int
    second_exit_code: int
    walk: Walk


async def die(fault: Fault, mail: bool, walk: Walk) -> Outcome:
    """One worker dies of the fault, a second finishes."""
    if mail:
        walk.of_a_mail()
    await walk.start()
    first = walk.worker(fault)
    exit_code = await first.ended()
    before = await walk.history()
    second = walk.worker()
    after = await walk.until_done()
    return Outcome(
        exit_code, before, after, await walk.joined(), await walk.commands_left(), second.pid, await second.stop(), walk
    )


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome | Exception]:
    """All cases, run side by side."""
    cases = {name: partial(die, fault, name.startswith("mail-")) for name, fault in CASES.items()}
    return asyncio.run(side_by_side(nats_server, tmp_path_factory.mktemp("killed"), cases))


@pytest.mark.parametrize("name", CASES)
def test_a_new_process_finishes_the_walk_and_repeats_nothing_that_was_committed(
    outcomes: dict[str, Outcome | Exception], name: str
) -> None:
    outcome = outcomes[name]
    if isinstance(outcome, Exception):
        raise outcome
    assert outcome.exit_code == -signal.SIGKILL, "the fault was not reached"
    assert outcome.after[: len(outcome.before)] == outcome.before
    assert_walked_once(outcome.walk, outcome.after)
    done = set(completed(outcome.before))
    again = [line for line in ran_in(outcome.walk, outcome.second) if line.execution.partition("/")[2] in done]
    assert again == []
    assert (outcome.joined, outcome.commands_left, outcome.second_exit_code) == (1, 0, 0)


def ran_in(walk: Walk, pid: int) -> list[Line]:
    return [line for line in walk.journal() if line.pid == pid]
