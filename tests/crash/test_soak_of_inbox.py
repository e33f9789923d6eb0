"""Many mails through all gates of `inbox`, among workers that are killed and stopped, by a server that loses answers."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import msgspec
import pytest
from tests.contract.effects.mail_server import mail_server
from tests.crash import forking, inboxing
from tests.crash.inboxing import INBOX, KINDS, TENANT, about, address, key_of, kind_of, mail
from tests.crash.mail_crew import Crew, Figures, Found, LossyMailServer, figures, look
from tests.crash.mailing import ACK_WAIT_S, MailingSettings, installed
from tests.crash.soaking import left, soaked_nats, start_among_deaths, until_over
from tests.crash.test_soak_of_mails import ANSWERS_LOST, QUICK_LOST, SEED, SOAK_RUNS, show

from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.keys import budget_key, outcomes_key, policy_key
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.outcomes import Counts, spans_of
from waybook.engine.aggregates.requests import Asked, ChangePolicy
from waybook.events.codec import Codec
from waybook.events.command import Command
from waybook.events.engine import LeaseRenewed
from waybook.events.subjects import RunKey, command_subject
from waybook.inbox.settings import DAILY
from waybook.inbox.starting import mail_start
from waybook.services.bootstrap.installation import Installation
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.reading.aggregates import read_aggregate
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.meter import SPEND
from waybook.testing.history import illegalities

QUICK_RUNS = 40
SECONDS_A_RUN = 0.5
LEAST_S = 60.0
PEOPLE = frozenset({"approval", "release", "exhausted", "unknown_outcome", "disputed", "convicted"})
MOST_COMMITS = 12
"""Of an approved and sent mail that met no failure, on its own run's subject."""


class Counted(msgspec.Struct):
    """What the ledgers say, and how long histories are."""

    charged: int
    spent: int
    left: int
    bounced: int
    told: int
    commits: dict[int, int]
    mails_a_second: float

    def text(self) -> str:
        """For the terminal."""
        return "\n".join(f"  {name}: {value}" for name, value in msgspec.structs.asdict(self).items())


def is_over(one: Found) -> bool:
    """Ended, or waiting for a person and for nobody else."""
    held = one.held
    return (one.run.ended and held.kind == "none") or (held.reason in PEOPLE and held.until is None)


async def soak(folder: Path, runs: int, *, journal: bool, lost: float) -> tuple[Figures, Counted]:
    """Walks them and checks what is left. Raises AssertionError for what is wrong."""
    await asyncio.to_thread(forking.ready)
    lot = random.Random(SEED)
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(soaked_nats())
        await ensure_topology(nats.url, ack_wait_ms=round(ACK_WAIT_S * 1000))
        began = time.monotonic()
        server = await stack.enter_async_context(mail_server(LossyMailServer(lot, lost)))
        installation = await stack.enter_async_context(installed(nats.url, "soak"))
        assert isinstance(server, LossyMailServer)
        imap_port = server.imap_port if journal else None
        settings = MailingSettings(url=nats.url, smtp_port=server.port, imap_port=imap_port, log=folder / "log")
        crew = Crew(settings, lot, inboxing.work)
        await _set_window(installation, 1)
        crew.begin()
        try:
            async with asyncio.timeout(LEAST_S + runs * SECONDS_A_RUN):
                first = [n for n in range(runs) if kind_of(n) != "report"]
                keys = await start_among_deaths(installation, crew, first, _start)
                found = await _until_over(
                    installation, crew, keys, {}
                )  # a reply has left before a report about it comes
                later = sorted(set(range(runs)) - set(first))
                keys += await start_among_deaths(installation, crew, later, _start)
                found = await _until_over(installation, crew, keys, found)
        except TimeoutError as error:
            raise AssertionError(await _stuck(installation, runs)) from error
        finally:
            crew.end()
        seconds = time.monotonic() - began
        counted = await _count(installation, found, runs / seconds)
        wrong = wrongs(found, server, counted)
        result = figures(found, server, crew, seconds)
    assert wrong == [], f"{len(wrong)} things are wrong: {wrong[:10]}\n{result.text()}\n{counted.text()}"
    return result, counted


async def _set_window(installation: Installation, seconds: int) -> None:
    lifecycle = Lifecycle(installation.wiring.state, Codec(), installation.wiring.clock, "soak")
    change = Asked(ChangePolicy({"auto_delay_seconds": seconds}), by="owner")
    await lifecycle.change(policy_key(TENANT), None, (change,), Grants())


async def _start(installation: Installation, number: int) -> RunKey:
    start = mail_start(mail(number), tenant=TENANT, mailbox=inboxing.MAILBOX, received_at=time.time_ns() // 1_000_000)
    for name, data in start.objects.items():
        await installation.wiring.objects.put(name, data)
    command = Command(
        id=f"start-{start.key}", verb="start", issued_at=time.time_ns() // 1_000_000, actor="soak",
        payload=msgspec.Raw(msgspec.json.encode(start.payload)),
    )  # fmt: skip
    subject = command_subject(start.key, "start", issuer="cli")
    await installation.wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)
    return start.key


async def _until_over(
    installation: Installation, crew: Crew, keys: list[RunKey], found: dict[RunKey, Found]
) -> dict[RunKey, Found]:
    """Waits until every mail has ended or is held for a person, and whoever was told of a bounce knows it."""
    return await until_over(installation, crew, keys, INBOX, is_over, lambda found: not _untold(found), found)


async def _stuck(installation: Installation, runs: int) -> str:
    """What is not over, for whoever reads the failure."""
    found = await look(installation, [key_of(n) for n in range(runs)], INBOX)
    open_ones = [(n, found[key_of(n)]) for n in range(runs) if key_of(n) in found and not is_over(found[key_of(n)])]
    texts = [f"mail {n} ({kind_of(n)}) is {one.run.state}: {one.held}" for n, one in open_ones[:10]]
    missing = runs - len(found)
    waiting = await left(installation)
    untold = _untold(found) if not missing else []
    return f"{len(open_ones)} open, {missing} not begun, {waiting} commands left, untold: {untold}\n" + "\n".join(texts)


def _untold(found: Mapping[RunKey, Found]) -> list[int]:
    """Replies that left, of which a report came, and whose run does not know it yet."""
    keys = {key: number for number in range(2 * len(found) + len(KINDS)) if (key := key_of(number)) in found}
    numbers = [n for n in keys.values() if kind_of(n) == "report"]
    return [n for n in numbers if _left_house(found[key_of(about(n))]) and not _bounces(found[key_of(about(n))])]


def _left_house(one: Found) -> bool:
    return one.run.state == "sent"


def _bounces(one: Found) -> int:
    return len(one.run.fields.get("returned") or ())


async def _count(installation: Installation, found: Mapping[RunKey, Found], rate: float) -> Counted:
    now, state = installation.wiring.clock.now(), installation.wiring.state

    async def read(key: RunKey) -> Counts:
        return sum(spans_of(await read_aggregate(state, Codec(), key)).values(), Counts())

    ledger = ledger_of(await read_aggregate(state, Codec(), budget_key(TENANT, DAILY, now)))
    spent = ledger_of(await read_aggregate(state, Codec(), budget_key(TENANT, SPEND, now)))
    outcomes = await read(outcomes_key(TENANT, now))
    plain = (one for one in found.values() if _left_house(one) and not _bounces(one) and _had_no_trouble(one))
    return Counted(
        charged=ledger.taken(now),
        spent=spent.used,
        left=outcomes.sent,
        bounced=outcomes.bounced,
        told=sum(_bounces(one) for one in found.values()),
        commits=dict(sorted(Counter(len(one.history) for one in plain).items())),
        mails_a_second=rate,
    )


def _had_no_trouble(one: Found) -> bool:
    """Each step began once, no lease was near its end, and the mail server's answer was heard."""
    actions = one.run.actions.values()
    if any(isinstance(event, LeaseRenewed) for commit in one.history for event in commit.events):
        return False
    if any(operation.by != "call" for operation in one.run.operations.values()):
        return False
    return all(a.status == "completed" for a in actions) and len(actions) == len({a.step for a in actions})


def wrongs(found: Mapping[RunKey, Found], mails: LossyMailServer, counted: Counted) -> list[str]:
    """All that is wrong with what is left, one sentence each."""
    texts = [f"{id} was sent {n} times" for id, n in Counter(mails.message_ids).items() if n > 1]
    to = Counter(cast(str, one["To"]) for one in mails.taken)
    for number in range(len(found)):
        texts += _wrong_with(number, found[key_of(number)], to[address(number)])
    sent = sum(_left_house(one) for one in found.values())
    unsure = sum(one.held.reason in PEOPLE - {"approval", "release"} for one in found.values())
    if not sent <= counted.charged <= sent + unsure:
        texts.append(f"{sent} replies left, {unsure} are in doubt, and {counted.charged} are charged")
    if counted.left != sent:
        texts.append(f"{sent} replies left, and {counted.left} are counted")
    if max(counted.commits, default=0) > MOST_COMMITS:
        texts.append(f"a mail that met no failure took {max(counted.commits)} commits")
    return texts


def _wrong_with(number: int, one: Found, got: int) -> list[str]:
    name = f"mail {number} ({kind_of(number)}, {one.run.key})"
    texts = [f"{name}: {text}" for text in illegalities(INBOX.engine.table, one.history, ended=one.run.ended)]
    if got > 1 or (got == 1 and kind_of(number) != "question"):
        texts.append(f"{name} was answered {got} times")
    if _left_house(one) and got != 1:
        texts.append(f"{name} is sent, and {got} mails arrived")
    if got and not _left_house(one) and not _is_told_that_it_left(one):
        texts.append(f"{name} is {one.run.state}, held {one.held.reason}, and its reply arrived")
    ends = {"list": "archived", "report": "archived", "attack": "quarantined"}.get(kind_of(number))
    if ends is not None and one.run.state not in (ends, "failed"):
        texts.append(f"{name} is {one.run.state}")
    if _bounces(one) > 1:
        texts.append(f"{name} knows of {_bounces(one)} bounces")
    unknown = [key for key, o in one.run.operations.items() if o.outcome in (None, "unknown")]
    if unknown and one.held.reason != "unknown_outcome":
        texts.append(f"{name}: nobody knows of {unknown}, and nobody is told")
    if not is_over(one):
        texts.append(f"{name} is {one.run.state}, neither ended nor held for a person: {one.held}")
    return texts


def _is_told_that_it_left(one: Found) -> bool:
    """Whether a person who looks at the run learns that its reply left, or may have."""
    if one.held.reason in ("convicted", "exhausted"):  # its step lost its last worker behind the outcome
        return any(operation.outcome == "succeeded" for operation in one.run.operations.values())
    return one.held.reason == "unknown_outcome"


async def test_mails_pass_every_gate_among_deaths(tmp_path: Path) -> None:
    """Each mail ends as its kind says, no reply leaves twice, ledgers agree with the log, bounces find their run."""
    result, _ = await soak(tmp_path, QUICK_RUNS, journal=True, lost=QUICK_LOST)
    assert result.runs == QUICK_RUNS and result.twice == 0 and result.crew.get("killed", 0) > 0


@pytest.mark.soak
@pytest.mark.parametrize("journal", [True, False], ids=["journal", "no-journal"])
async def test_thousands_of_mails_pass_every_gate_among_deaths(
    tmp_path: Path, journal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """As above, WAYBOOK_SOAK_RUNS times (10,000)."""
    result, counted = await soak(tmp_path, SOAK_RUNS, journal=journal, lost=ANSWERS_LOST)
    title = f"{SOAK_RUNS} mails through all gates, {'with' if journal else 'without'} a journal"
    show(capsys, title, result)
    with capsys.disabled():
        print(counted.text())  # noqa: T201
    assert result.runs == SOAK_RUNS and result.twice == 0
