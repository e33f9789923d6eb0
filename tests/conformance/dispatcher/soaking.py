"""Many passes through many cases, in processes beside this one: what differs, and how long it took."""

import asyncio
import logging
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from random import Random

import msgspec
from tests.conformance.cases import Case
from tests.conformance.dispatcher.interpreter import run_case
from tests.conformance.pipeline.backends import in_memory

CORES = 2


class Share(msgspec.Struct, frozen=True):
    """What came of one seed with so many walkers: passes, seconds, and by case what differed."""

    walkers: int
    seed: int
    passes: int
    seconds: float
    differences: tuple[str, ...]


def mix(cases: Sequence[Case], walkers: int, seed: int) -> Share:
    """Every case once, its work and deliveries mixed by chance among so many walkers."""
    logging.disable(logging.CRITICAL)
    began = time.perf_counter()
    differences = asyncio.run(_mix(cases, walkers, seed))
    return Share(walkers, seed, len(cases), time.perf_counter() - began, tuple(differences))


async def _mix(cases: Sequence[Case], walkers: int, seed: int) -> list[str]:
    found = []
    for case in cases:
        chance = Random(seed)
        try:
            await run_case(case, partial(in_memory, chance), workers=walkers, chance=chance)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a difference, and the others go on
            found.append(f"{case.id} with {walkers} walkers, seed {seed}: {type(error).__name__}: {error}")
    return found


def mix_all(
    cases: Sequence[Case], walkers: Sequence[int], seeds: int, tell: Callable[[Share], None], cores: int = CORES
) -> list[str]:
    """All seeds with each number of walkers, on several cores; `tell` hears of each share. What differed."""
    found: list[str] = []
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        shares = [pool.submit(mix, cases, number, seed) for number in walkers for seed in range(seeds)]
        for share in as_completed(shares):
            done = share.result()
            found += done.differences
            tell(done)
    return found
