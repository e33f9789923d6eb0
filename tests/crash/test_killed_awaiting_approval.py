"""Killed before, while and after a person decides: an empty process goes on, the decision stands once."""

import asyncio
import signal
from functools import partial

import msgspec
import pytest
from tests.crash.asking import PERSON
from tests.crash.walks import Walk, side_by_side, until_async
from tests.crash.worker import Fault

from waybook.engine.digest import canonical_digest
from waybook.engine.fold import fold_all
from waybook.engine.run import Run
from waybook.events.command import Command, StartPayload
from waybook.events.commit import Commit
from waybook.events.engine import ApprovalDecided, ApprovalRequested
from waybook.events.subjects import RunKey, command_subject
from waybook.testing.faults import Boundary
from waybook.testing.history import events_of
from waybook.testing.servers import NatsUnderTest

SUBJECT = "March"
RUN = "*.asking.*"

# The first commit holds the start, the second the request; the third the decision and the begin of `send`.
_COMMITS: dict[str, Boundary] = {"decided": "append.before", "sent": "append.sent", "stored-unseen": "append.after"}
CASES: dict[str, Fault | None] = {
    "while-nobody-decides": None,
    **{f"request-{word}": Fault(at, "kill", nth=2, where=RUN) for word, at in _COMMITS.items()},
    **{f"decision-{word}": Fault(at, "kill", nth=3, where=RUN) for word, at in _COMMITS.items()},
    "next-step-runs": Fault("step.running", "kill", where="send"),
    **{f"end-{word}": Fault(at, "kill", nth=4, where=RUN) for word, at in _COMMITS.items()},
}


class Outcome(msgspec.Struct):
    """What a case left behind."""

    exit_code: int
    run: Run
    history: list[Commit]
    walk: Walk


async def die(fault: Fault | None, walk: Walk) -> Outcome:
    """One worker dies; a second, with an empty memory, finishes. A person decides once, while the run waits."""
    walk.key = RunKey(walk.tenant, "asking", "r1")
    body = msgspec.Raw(msgspec.json.encode({"subject": SUBJECT}))
    await walk.start_of(walk.key, StartPayload(event="ReportWanted", body=body))
    first = walk.worker(fault, version="asking")
    if fault is None:
        await walk.until_version(_asks, "the run waits for a person")
        await until_async(walk.is_acknowledged, "nothing is held while it waits")
        first.signal(signal.SIGKILL)
        await first.ended()
    deciding = asyncio.create_task(_decide(walk))
    exit_code = await first.ended()
    walk.worker(version="asking")
    await deciding
    await walk.until_version(lambda h: _folded(walk, h).ended, "the run ends")
    await until_async(walk.is_acknowledged, "every command is acknowledged")
    history = await walk.history()
    return Outcome(exit_code, _folded(walk, history), history, walk)


def _asks(history: list[Commit]) -> bool:
    return any(isinstance(event, ApprovalRequested) for _, event in events_of(history))


def _folded(walk: Walk, history: list[Commit]) -> Run:
    run = fold_all(None, [(commit, n, "") for n, commit in enumerate(history, 1)], key=walk.key)
    assert run is not None
    return run


async def _decide(walk: Walk) -> None:
    """A person approves what waits; the command is theirs once, however many processes die over it."""
    await walk.until_version(_asks, "the run asks")
    payload = msgspec.Raw(msgspec.json.encode({"reason": "read it"}))
    command = Command(id=f"yes-{walk.tenant}", verb="approve", issued_at=0, actor=PERSON, payload=payload)
    subject = command_subject(walk.key, "approve", issuer="cli")
    await walk.wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome | Exception]:
    """All cases, run side by side."""
    cases = {name: partial(die, fault) for name, fault in CASES.items()}
    return asyncio.run(side_by_side(nats_server, tmp_path_factory.mktemp("asking"), cases))


@pytest.mark.parametrize("name", CASES)
def test_an_empty_process_goes_on_and_the_decision_stands_once(
    outcomes: dict[str, Outcome | Exception], name: str
) -> None:
    """What was approved is what the next step is told, by whom, once; nobody is asked twice."""
    outcome = outcomes[name]
    if isinstance(outcome, Exception):
        raise outcome
    assert outcome.exit_code == -signal.SIGKILL, "the fault was not reached"
    asked = [e for _, e in events_of(outcome.history) if isinstance(e, ApprovalRequested)]
    decided = [e for _, e in events_of(outcome.history) if isinstance(e, ApprovalDecided)]
    assert (len(asked), len(decided)) == (1, 1)
    sent = msgspec.json.decode(outcome.run.log[-1].payload)
    assert sent == {"by": PERSON, "digest": canonical_digest({"text": SUBJECT})}
    assert outcome.run.outcome == "completed"
    done = [a.step for a in outcome.run.actions.values() if a.status == "completed"]
    assert done == ["write", "send"]
    lines = [(line.execution, line.attempt) for line in outcome.walk.journal() if line.word == "begun"]
    assert len(lines) == len(set(lines)), "one attempt ran twice"
