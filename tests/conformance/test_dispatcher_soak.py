"""Dispatcher cases with several walkers, whose work is mixed by chance: what a case expects holds whoever does it."""

import os
import sys
import time
from pathlib import Path

import pytest
from tests.conformance.cases import Case, collect, default_files
from tests.conformance.dispatcher.killing import Pass, kill_all
from tests.conformance.dispatcher.soaking import Share, mix_all
from tests.conformance.test_own_cases import CASES as OWN
from tests.crash.walks import installation

from waybook.adapters.nats.command_queue import STREAM
from waybook.testing.servers import NatsUnderTest, clear_streams

SEEDS = int(os.environ.get("WAYBOOK_SOAK_SEEDS", "50"))
WALKERS = (2, 4, 8)
SHOWN = 20


def cases() -> list[Case]:
    """Those that play something; `WAYBOOK_SOAK_CASE` names one of them."""
    only = os.environ.get("WAYBOOK_SOAK_CASE")
    played = [c for c in (*collect(default_files()), *OWN) if c.format == "dispatcher" and c.publish]
    return [c for c in played if only in (None, c.id)]


def mixable() -> list[Case]:
    """Those that leave open how many walkers there are, and how much each does at once."""
    return [c for c in cases() if not any("workers" in item or "slots" in item for item in c.publish)]


def deadly() -> list[Case]:
    """Those that arm a crash."""
    return [c for c in cases() if any("crash" in item for item in c.publish)]


@pytest.mark.soak
def test_mixed_by_chance(capsys: pytest.CaptureFixture[str]) -> None:
    """No case differs with 2, 4 and 8 walkers, deliveries shuffled, WAYBOOK_SOAK_SEEDS (50) times each."""
    played = mixable()
    _expect_none(capsys, played, SEEDS)


def test_mixed_a_little(capsys: pytest.CaptureFixture[str]) -> None:
    """The same with one seed and every tenth case, so that the soak itself is tried."""
    _expect_none(capsys, mixable()[::10], 1, shown=False)


def _expect_none(capsys: pytest.CaptureFixture[str], played: list[Case], seeds: int, *, shown: bool = True) -> None:
    began, shares, differences = time.perf_counter(), 0, 0

    def tell(share: Share) -> None:
        nonlocal shares, differences
        shares += 1
        differences += len(share.differences)
        if shown and (shares % 10 == 0 or shares == seeds * len(WALKERS)):
            text = f"{shares * len(played)} of {seeds * len(WALKERS) * len(played)} passes, {differences} differences"
            _say(capsys, f"{text}, {time.perf_counter() - began:.0f} s")

    if shown:
        _say(capsys, f"\n{len(played)} dispatcher cases, {seeds} seeds, {WALKERS} walkers, shuffled")
    found = mix_all(played, WALKERS, seeds, tell)
    assert not found, "\n".join(found[:SHOWN])


@pytest.mark.soak
async def test_killed_for_real(own_nats: NatsUnderTest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No case that arms a crash differs when the process with 2, 4 or 8 walkers dies of a real SIGKILL."""
    await _kill(own_nats, tmp_path, capsys, SEEDS)


async def test_killed_for_real_once(
    own_nats: NatsUnderTest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same, once each."""
    await _kill(own_nats, tmp_path, capsys, 1, shown=False)


async def _kill(
    nats: NatsUnderTest, folder: Path, capsys: pytest.CaptureFixture[str], seeds: int, *, shown: bool = True
) -> None:
    passes = [Pass(case, walkers, seed) for seed in range(seeds) for walkers in WALKERS for case in deadly()]
    began = time.perf_counter()

    def tell(done: int) -> None:
        if shown and (done % 50 == 0 or done == len(passes)):
            _say(capsys, f"{done} of {len(passes)} passes with a SIGKILL, {time.perf_counter() - began:.0f} s")

    await clear_streams(nats.url)
    async with installation(nats.url) as wiring:
        found = await kill_all(wiring, nats.url, folder, passes, tell)
        left = [one.name for one in await wiring.connection.client.jetstream().consumers_info(STREAM)]
    if shown:
        _say(capsys, f"{len(passes)} processes killed, {len(found)} differences")
    assert not found, "\n".join(found[:SHOWN])
    assert not left, "a server takes only so many consumers"


def _say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
