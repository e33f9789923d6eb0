"""Dispatcher cases with several walkers, whose work is mixed by chance: what a case expects holds whoever does it."""

import os
from random import Random

import pytest
from tests.conformance.cases import Case, collect, default_files
from tests.conformance.dispatcher.interpreter import run_case
from tests.conformance.pipeline.backends import in_memory
from tests.conformance.test_own_cases import CASES as OWN

SEEDS = int(os.environ.get("WAYBOOK_SOAK_SEEDS", "50"))


def cases() -> list[Case]:
    """Those that play something, with as many walkers as we like."""
    played = [c for c in (*collect(default_files()), *OWN) if c.format == "dispatcher" and c.publish]
    return [c for c in played if not any("workers" in item or "slots" in item for item in c.publish)]


@pytest.mark.soak
@pytest.mark.parametrize("walkers", [2, 4, 8])
@pytest.mark.parametrize("played", cases(), ids=lambda case: case.id)
async def test_mixed_by_chance(played: Case, walkers: int) -> None:
    for seed in range(SEEDS):
        try:
            await run_case(played, in_memory, workers=walkers, chance=Random(seed))
        except Exception as error:
            error.add_note(f"with {walkers} walkers, seed {seed}")
            raise
