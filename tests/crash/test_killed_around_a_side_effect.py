"""Workers killed and stopped around a side effect: the other side sees it once, and the run knows it."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
from tests.contract.effects.http_service import HttpService, http_service
from tests.contract.effects.mail_server import MailServer, mail_server
from tests.crash.sending import Outside, Sending
from tests.crash.walks import Walk, side_by_side, until_async
from tests.crash.worker import Fault

from waybook.agents.definition import define
from waybook.engine.fold import fold_all
from waybook.engine.hold import hold
from waybook.engine.run import Run
from waybook.events.command import Command, StartPayload
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey, command_subject
from waybook.testing.faults import Boundary
from waybook.testing.servers import NatsUnderTest

RUN = "*.sending.*"
WAYS = ("ticket", "mail")

# The first commit holds the start and the begin, the second the intent, the third the outcome, the fourth the result.
_COMMITS: Mapping[str, Boundary] = {"decided": "append.before", "sent": "append.sent", "stored-unseen": "append.after"}
PLACES: Mapping[str, Fault] = {
    **{f"intent-{word}": Fault(at, nth=2, where=RUN) for word, at in _COMMITS.items()},
    "before-the-call": Fault("call.before"),
    "after-the-call": Fault("call.after"),
    **{f"outcome-{word}": Fault(at, nth=3, where=RUN) for word, at in _COMMITS.items()},
    **{f"result-{word}": Fault(at, nth=4, where=RUN) for word, at in _COMMITS.items()},
}
KILLED = {f"{way}-{name}": (way, fault) for way in WAYS for name, fault in PLACES.items()}
STOPPED = {
    f"{way}-{name}": (way, msgspec.structs.replace(PLACES[name], deed="pause"))
    for way in WAYS
    for name in ("intent-stored-unseen", "before-the-call", "after-the-call", "outcome-decided")
}
AT_ONCE = 12
"""A call has seconds, and the other sides answer on the loop of this test."""


class Outcome(msgspec.Struct):
    """What a case left behind. `arrived` counts what the other side has."""

    exit_code: int
    run: Run
    arrived: int


@asynccontextmanager
async def other_sides(*, journal: bool = True) -> AsyncIterator[tuple[Outside, HttpService, MailServer]]:
    """A service and a mail server of a case's own."""
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(http_service(HttpService()))
        mails = await stack.enter_async_context(mail_server(MailServer()))
        yield Outside(service.url, mails.port, mails.imap_port if journal else None), service, mails


async def begin(walk: Walk, way: str) -> None:
    walk.ack_wait(2.0)
    walk.key = RunKey(walk.tenant, "sending", "r1")
    await walk.start_of(walk.key, StartPayload(event="Wanted", body=msgspec.Raw(msgspec.json.encode({"way": way}))))


def folded(walk: Walk, history: list[Commit]) -> Run:
    run = fold_all(None, [(commit, n, "") for n, commit in enumerate(history, 1)], key=walk.key)
    assert run is not None
    return run


async def ended(walk: Walk) -> Run:
    history = await walk.until_version(lambda h: bool(h) and folded(walk, h).ended, "the run ends")
    await until_async(walk.is_acknowledged, f"{walk.tenant}: every command is acknowledged")
    return folded(walk, await walk.history() or history)


async def die(way: str, fault: Fault, walk: Walk) -> Outcome:
    """One worker dies; others with empty memories come, two of them at once around the call, and one finishes (FB-46)."""
    async with other_sides() as (outside, service, mails):
        await begin(walk, way)
        first = walk.worker(fault, version="sending", outside=outside)
        exit_code = await first.ended()
        for _ in range(2 if fault.boundary.startswith("call.") else 1):
            walk.worker(version="sending", outside=outside)
        run = await ended(walk)
        return Outcome(exit_code, run, len(service.kept) + len(mails.taken))


async def stop(way: str, fault: Fault, walk: Walk) -> Outcome:
    """One worker stands still past its lease and its call's deadline, a second finishes, the first goes on (FB-47)."""
    async with other_sides() as (outside, service, mails):
        await begin(walk, way)
        first = walk.worker(fault, version="sending", outside=outside)
        await first.paused()
        walk.worker(version="sending", outside=outside)
        await ended(walk)
        first.signal(signal.SIGCONT)
        exit_code = await first.stop()
        run = folded(walk, await walk.history())
        return Outcome(exit_code, run, len(service.kept) + len(mails.taken))


@pytest.fixture(scope="module")
def outcomes(nats_server: NatsUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome | Exception]:
    """All cases, run side by side."""
    cases: dict[str, Any] = {f"killed-{name}": partial(die, *case) for name, case in KILLED.items()}
    cases |= {f"stopped-{name}": partial(stop, *case) for name, case in STOPPED.items()}
    cases |= {f"unheard-{word}": partial(unheard, word) for word in ("arrived", "not-arrived")}
    folder = tmp_path_factory.mktemp("effects")
    return asyncio.run(side_by_side(nats_server, folder, cases, AT_ONCE, [define(Sending)]))


def of(outcomes: dict[str, Outcome | Exception], name: str) -> Outcome:
    outcome = outcomes[name]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@pytest.mark.parametrize("name", KILLED)
def test_killed_anywhere_around_it_nothing_is_sent_twice_and_nothing_is_forgotten(
    outcomes: dict[str, Outcome | Exception], name: str
) -> None:
    outcome = of(outcomes, f"killed-{name}")
    assert outcome.exit_code == -signal.SIGKILL, "the fault was not reached"
    assert outcome.arrived == 1
    assert [o.outcome for o in outcome.run.operations.values()] == ["succeeded"]
    assert outcome.run.outcome == "completed"
    assert [a.status for a in outcome.run.actions.values()].count("completed") == 1


@pytest.mark.parametrize("name", STOPPED)
def test_a_worker_that_stood_still_past_its_lease_sends_nothing_when_it_wakes(
    outcomes: dict[str, Outcome | Exception], name: str
) -> None:
    outcome = of(outcomes, f"stopped-{name}")
    assert outcome.exit_code == 0
    assert outcome.arrived == 1
    assert [(o.outcome, o.disputed) for o in outcome.run.operations.values()] == [("succeeded", ())]
    assert outcome.run.outcome == "completed"


async def unheard(word: str, walk: Walk) -> Outcome:
    """A mail server without a journal: the worker dies before or after the mail left, and a person says which."""
    async with other_sides(journal=False) as (outside, _, mails):
        await begin(walk, "mail")
        fault = Fault("call.after" if word == "arrived" else "call.before")
        first = walk.worker(fault, version="sending", outside=outside)
        exit_code = await first.ended()
        walk.worker(version="sending", outside=outside)
        history = await walk.until_version(lambda h: _is_held(folded(walk, h)), "the run is held")
        await until_async(walk.is_acknowledged, "nothing is held by anybody while it waits")
        (key,) = folded(walk, history).operations
        await until_async(partial(_said, walk, key, word), "the person's word is taken")
        run = await ended(walk)
        return Outcome(exit_code, run, len(mails.taken))


def _is_held(run: Run) -> bool:
    from tests.crash.worker import AGENTS

    return hold(AGENTS["sending"].engine, run).kind == "reconciling" and not run.open


async def _said(walk: Walk, key: str, word: str) -> bool:
    """Given again until it is taken: that nothing arrived counts when no call can be under way any more."""
    version = len(await walk.history())
    payload = {"operation": key, "outcome": "succeeded" if word == "arrived" else "absent"}
    command = Command(
        id=f"{walk.tenant}-{asyncio.get_running_loop().time()}", verb="settle", issued_at=0, actor="ann",
        payload=msgspec.Raw(msgspec.json.encode(payload)),
    )  # fmt: skip
    subject = command_subject(walk.key, "settle", issuer="cli")
    await walk.wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)
    await until_async(walk.is_acknowledged, "the command is handled")
    return len(await walk.history()) > version


@pytest.mark.parametrize("word", ["arrived", "not-arrived"])
def test_without_a_journal_a_person_says_and_nothing_is_sent_again_before(
    outcomes: dict[str, Outcome | Exception], word: str
) -> None:
    outcome = of(outcomes, f"unheard-{word}")
    assert outcome.exit_code == -signal.SIGKILL
    assert outcome.arrived == 1
    assert outcome.run.failures == {"send": 1}, "only the lost worker counts"
    assert outcome.run.outcome == "completed"
