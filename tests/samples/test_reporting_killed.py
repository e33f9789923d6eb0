"""Killed in the approval wait, right after a call, and in retry backoff: an empty process goes on as if nothing was."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.contract.effects.mail_server import MailServer, mail_server
from tests.crash import forking
from tests.samples.reporting_office import Office, office, until, work
from tests.samples.test_reporting_incident import report_of

from waybook.events.engine import ApprovalRequested, ApprovalUsed, OperationIntended
from waybook.events.subjects import RunKey
from waybook.testing.history import completed, read_history
from waybook.testing.servers import NatsUnderTest

STEPS = ["query", "generate", "send"]


@pytest.fixture
async def here(clean_nats: NatsUnderTest, tmp_path: Path) -> AsyncIterator[Office]:
    await asyncio.to_thread(forking.ready)
    async with mail_server(MailServer()) as mails, office(clean_nats.url, mails, tmp_path) as found:
        yield found


@contextmanager
def process(here: Office, *, deadly: str | None = None) -> Iterator[ForkServerProcess]:
    """A process with a walker and a scheduler, and an empty memory; it is gone after the block."""
    url = here.installation.addresses.nats_url
    one = forking.begin(work, url, here.mails.port, here.mails.imap_port, here.asked.parent, deadly)
    try:
        yield one
    finally:
        one.kill()
        one.join(10)


async def dead(one: ForkServerProcess) -> None:
    """Returns when it ended by SIGKILL."""

    async def is_dead() -> bool:
        return one.exitcode is not None

    await until(is_dead)
    assert one.exitcode == -signal.SIGKILL


async def finished(here: Office, key: RunKey, *, queries: int = 1) -> None:
    """The run ended well: every step once, one approval used once, one mail with the report that was approved."""
    run = await here.until_state(key, "completed")
    assert [c.split(":")[1] for c in completed(await read_history(here.installation.wiring.state, key))] == STEPS
    assert [sha256(data).hexdigest() for data in here.attached()] == [report_of(run).sha256]
    assert len(await here.events(key, ApprovalRequested)) == 1
    assert len(await here.events(key, ApprovalUsed)) == 1
    assert here.queries() == queries


async def test_killed_while_a_person_thinks(here: Office) -> None:
    with process(here) as first:
        key = await here.start()
        await here.until_state(key, "approval_pending")
        first.kill()
        await dead(first)
    with process(here):
        assert (await here.give(key, "approve")).ok
        await finished(here, key)


async def test_killed_right_after_the_figures_came(here: Office) -> None:
    """The answer died with the process, so the question, which changes nothing, is asked again."""
    with process(here, deadly="query") as first:
        key = await here.start()
        await dead(first)
    with process(here):
        await here.until_state(key, "approval_pending")
        await here.give(key, "approve")
        await finished(here, key, queries=2)


async def test_killed_right_after_the_mail_left(here: Office) -> None:
    """Nobody heard the server's answer: the next process asks its journal, and sends nothing."""
    with process(here, deadly="mail") as first:
        key = await here.start()
        await here.until_state(key, "approval_pending")
        await here.give(key, "approve")
        await dead(first)
    assert len(here.mails.taken) == 1
    with process(here):
        await finished(here, key)
    assert len(await here.events(key, OperationIntended)) == 1


async def test_killed_in_retry_backoff(here: Office) -> None:
    """The mail server was busy; the process dies before the next attempt is due, and another one makes it."""
    here.mails.fault = "451"
    with process(here) as first:
        key = await here.start()
        await here.until_state(key, "approval_pending")
        await here.give(key, "approve")
        await here.until_state(key, "failed")
        first.kill()
        await dead(first)
    assert here.mails.taken == []
    with process(here):
        await finished(here, key)
