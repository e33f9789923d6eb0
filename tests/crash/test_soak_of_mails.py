"""Many runs that send a mail each, among workers that are killed and stopped, by a mail server that loses answers."""

import asyncio
import os
import random
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.contract.effects.mail_server import mail_server
from tests.crash import forking
from tests.crash.mail_crew import Crew, Figures, LossyMailServer, figures, start, wrongs
from tests.crash.mailing import ACK_WAIT_S, MAILING, MailingSettings, installed
from tests.crash.soaking import soaked_nats, start_among_deaths, until_over

from waybook.services.bootstrap.topology import ensure_topology

QUICK_RUNS = 80
SOAK_RUNS = int(os.environ.get("WAYBOOK_SOAK_RUNS", "10000"))
ANSWERS_LOST, QUICK_LOST = 0.02, 0.1
SEED = int(os.environ.get("WAYBOOK_SOAK_SEED", "1"))
SECONDS_A_RUN = 0.5
LEAST_S = 90.0


async def soak(folder: Path, runs: int, *, journal: bool, lost: float = ANSWERS_LOST) -> Figures:
    """Walks them and checks what is left; `lost` is the share of answers that the mail server loses.

    Raises AssertionError for what is wrong.
    """
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
        crew = Crew(MailingSettings(url=nats.url, smtp_port=server.port, imap_port=imap_port, log=folder / "log"), lot)
        crew.begin()
        try:
            async with asyncio.timeout(LEAST_S + runs * SECONDS_A_RUN):
                keys = await start_among_deaths(installation, crew, range(runs), start)
                found = await until_over(installation, crew, keys, MAILING, lambda one: one.is_over)
        finally:
            crew.end()
        wrong = wrongs(found, server)
        result = figures(found, server, crew, time.monotonic() - began)
    assert wrong == [], f"{len(wrong)} things are wrong: {wrong[:10]}\n{result.text()}"
    return result


def assert_sound(result: Figures, runs: int, *, journal: bool) -> None:
    """What holds for any number of runs; that nothing left twice and every run is over was checked one by one."""
    assert result.runs == runs and result.twice == 0
    assert result.crew.get("killed", 0) > 0 and sum(result.answers_lost.values()) > 0
    assert result.exhausted <= result.most_exhausted, result.text()
    if journal:
        assert result.unknown == 0, result.text()
    else:
        assert result.unknown >= sum(result.answers_lost.values()), result.text()


def show(capsys: pytest.CaptureFixture[str], title: str, result: Figures) -> None:
    """Prints the figures past pytest's capture."""
    with capsys.disabled():
        sys.stdout.write(f"\n{title}\n{result.text()}\n")


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "no-journal"])
async def test_mails_leave_once_among_deaths(tmp_path: Path, journal: bool) -> None:
    """Every run ends or is held for a person; no mail leaves twice; unknown outcomes are found, or held."""
    result = await soak(tmp_path, QUICK_RUNS, journal=journal, lost=QUICK_LOST)
    assert_sound(result, QUICK_RUNS, journal=journal)


@pytest.mark.soak
@pytest.mark.parametrize("journal", [True, False], ids=["journal", "no-journal"])
async def test_thousands_of_mails_leave_once_among_deaths(
    tmp_path: Path, journal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """As above, WAYBOOK_SOAK_RUNS times (10,000)."""
    result = await soak(tmp_path, SOAK_RUNS, journal=journal)
    show(capsys, f"{SOAK_RUNS} mails, {'with' if journal else 'without'} a journal", result)
    assert_sound(result, SOAK_RUNS, journal=journal)
