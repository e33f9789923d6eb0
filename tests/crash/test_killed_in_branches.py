"""Workers killed while a mail with several matters is drafted side by side: each branch once, the join once."""

import asyncio
import signal
from collections import Counter
from functools import partial

import msgspec
import pytest
from tests.crash.walks import Walk, side_by_side, until_async
from tests.crash.worker import Fault

from waybook.engine.fold import fold_all
from waybook.engine.run import Run
from waybook.events.commit import Commit
from waybook.inbox.table import TABLE
from waybook.testing.faults import Boundary
from waybook.testing.history import completed, illegalities
from waybook.testing.servers import NatsUnderTest

PARTS = (
    "When does my order 30418 arrive? The courier cannot find it.",
    "Also, I would like an invoice for February in the name of my company.",
    "Separately, could you please send us a quote for twenty licences?",
)
HEAD = """From: Livia <livia@cestari.example>
To: help@ours.example
Subject: Several things
Message-ID: <several@cestari.example>

"""
MATTERS = (2, 3)

# Commits 1 to 3 are those of every mail; the fourth ends classify and begins the branches, then each branch ends, the
# last with the begin of the join, and the join with that of route. Results that come together share a commit.
_COMMITS: dict[str, Boundary] = {"decided": "append.before", "sent": "append.sent", "stored-unseen": "append.after"}
FIRST_OF_BRANCHES, LAST_WITH_MERGING = 4, 7
PLACES: dict[str, Fault] = {
    **{
        f"commit-{nth}-{word}": Fault(at, nth=nth, where="*.inbox.*")
        for word, at in _COMMITS.items()
        for nth in range(FIRST_OF_BRANCHES, LAST_WITH_MERGING + 1)
    },
    "not-acknowledged": Fault("ack.before"),
}
CASES = {f"{matters}-{name}": (matters, fault) for matters in MATTERS for name, fault in PLACES.items()}


class Outcome(msgspec.Struct):
    """What a case left behind. `before` is the history at the first worker's death."""

    exit_code: int
    before: list[Commit]
    after: list[Commit]
    commands_left: int
    run: Run


def mail(matters: int) -> bytes:
    """A mail that asks for so many things."""
    return (HEAD + "\n\n".join(PARTS[:matters]) + "\n").encode()


def folded(walk: Walk, history: list[Commit]) -> Run:
    run = fold_all(None, [(commit, n, "") for n, commit in enumerate(history, 1)], key=walk.key)
    assert run is not None
    return run


def rests(walk: Walk, history: list[Commit]) -> bool:
    """The reply is there, and nothing is under way."""
    run = folded(walk, history) if history else None
    return run is not None and run.state == "draft_ready" and not run.open and not run.offers


async def die(matters: int, fault: Fault, walk: Walk) -> Outcome:
    """One worker dies of the fault; another one, with an empty memory, finishes."""
    walk.of_a_mail(mail(matters))
    await walk.start()
    exit_code = await walk.worker(fault).ended()
    before = await walk.history()
    walk.worker()
    await walk.until_version(partial(rests, walk), "the reply is drafted")
    await until_async(walk.is_acknowledged, f"{walk.tenant}: every command is acknowledged")
    after = await walk.history()
    return Outcome(exit_code, before, after, await walk.commands_left(), folded(walk, after))


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome | Exception]:
    """All cases, run side by side."""
    cases = {name: partial(die, *case) for name, case in CASES.items()}
    return asyncio.run(side_by_side(nats_server, tmp_path_factory.mktemp("branches"), cases, at_once=14))


@pytest.mark.parametrize("name", CASES)
def test_killed_anywhere_each_branch_is_drafted_once_and_joined_once(
    outcomes: dict[str, Outcome | Exception], name: str
) -> None:
    """What was committed stands; of every branch one draft is stored, and one reply is composed of all of them."""
    outcome = outcomes[name]
    if isinstance(outcome, Exception):
        raise outcome
    assert outcome.exit_code == -signal.SIGKILL, "the fault was not reached"
    assert outcome.after[: len(outcome.before)] == outcome.before
    assert illegalities(TABLE, outcome.after) == []
    matters = CASES[name][0]
    steps = Counter(execution.split(":")[1] for execution in completed(outcome.after))
    once = ("security_scan", "context_retrieval", "classify", "compose", "route")
    assert steps == {**dict.fromkeys(once, 1), "draft": matters}
    drafted = [a.branch for a in outcome.run.actions.values() if a.step == "draft" and a.status == "completed"]
    assert len(set(drafted)) == len(drafted) == matters
    published = Counter(p.event for p in outcome.run.log)
    assert (published["DraftProposed"], outcome.commands_left) == (1, 0)
