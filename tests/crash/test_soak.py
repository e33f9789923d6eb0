"""Hundreds of deaths, pauses and stops among several workers: every walk ends, and no history is illegal."""

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.crash import forking
from tests.crash.five_steps import FIVE_STEPS_TABLE, STEPS
from tests.crash.walks import Walk, Worker, installation, until_async, walking
from tests.crash.worker import Fault

from waybook.events.commit import Commit
from waybook.events.engine import CommandConvicted
from waybook.events.subjects import RunKey
from waybook.testing.faults import Boundary
from waybook.testing.history import completed, events_of, illegalities, read_history
from waybook.testing.servers import NatsUnderTest

BACKLOG = 60
WORKERS = 3
DEATHS = 300
WITHIN_S = 1200.0
ENDS = (0, -signal.SIGKILL, -signal.SIGTERM)  # a worker that is just starting has no handler for SIGTERM
BOUNDARIES: tuple[Boundary, ...] = (
    "append.before", "append.sent", "append.after", "pull.after", "ack.before", "ack.after",
    "step.begun", "step.running", "step.ended", "nak.before", "tail.before", "history.before",
)  # fmt: skip


class Crew:
    """Workers that are replaced when they die; what becomes of each is drawn by lot."""

    def __init__(self, walk: Walk, lot: random.Random) -> None:
        self._walk = walk
        self._lot = lot
        self.ends: Counter[str] = Counter()
        self.calm = False

    async def work(self) -> None:
        """One place in the crew."""
        while not self.calm:
            fault = Fault(self._lot.choice(BOUNDARIES), nth=self._lot.randint(1, 60))
            worker = self._walk.worker(fault)
            end = self._lot.choice(("fault", "fault", "pause", "stop"))
            await (self._until_dead(worker) if end == "fault" else self._meddle(worker, end))
            self.ends[end] += 1

    async def _until_dead(self, worker: Worker) -> None:
        """By its own fault, or killed from outside when that is not reached."""
        try:
            code = await worker.ended(within_s=self._lot.uniform(2.0, 8.0))
        except AssertionError:
            worker.signal(signal.SIGKILL)
            code = await worker.ended()
        assert code in ENDS, "a worker ended with an error, see the log"

    async def _meddle(self, worker: Worker, how: str) -> None:
        await asyncio.sleep(self._lot.uniform(0.1, 1.0))
        if how == "pause" and worker.alive:
            worker.signal(signal.SIGSTOP)
            await asyncio.sleep(self._lot.uniform(0.5, 2.5))
            worker.signal(signal.SIGCONT)
            await asyncio.sleep(self._lot.uniform(0.0, 0.5))
        if worker.alive:
            worker.signal(signal.SIGTERM)
        code = await worker.ended()
        assert code in ENDS, "a worker ended with an error, see the log"


@pytest.mark.soak
@pytest.mark.parametrize("seed", [int(os.environ.get("WAYBOOK_SOAK_SEED", "1"))])
async def test_every_walk_ends_among_workers_that_die_pause_and_stop(
    own_nats: NatsUnderTest, tmp_path: Path, seed: int
) -> None:
    await asyncio.to_thread(forking.ready)
    lot = random.Random(seed)
    async with installation(own_nats.url) as wiring, walking(wiring, own_nats.url, "soak", tmp_path) as walk:
        crew = Crew(walk, lot)
        keys: list[RunKey] = []
        places = [asyncio.create_task(crew.work()) for _ in range(WORKERS)]
        async with asyncio.timeout(WITHIN_S):
            while crew.ends.total() < DEATHS and not any(place.done() for place in places):
                if await walk.commands_left() < BACKLOG:
                    keys += [RunKey("soak", "inbox", f"r{len(keys) + number}") for number in range(10)]
                    await asyncio.gather(*(walk.start_of(key) for key in keys[-10:]))
                await asyncio.sleep(0.1)
        crew.calm = True
        await asyncio.gather(*places)
        last = walk.worker()
        await until_async(walk.is_acknowledged, "every command is acknowledged", WITHIN_S)
        assert await last.stop() in ENDS
        histories = {key: await read_history(wiring.state, key) for key in keys}
        assert await walk.dead() == sum(is_convicted(h) for h in histories.values())
    wrong = {key.run: found for key, h in histories.items() if (found := faults_of(h))}
    assert wrong == {}
    begun = Counter((line.execution, line.attempt) for line in walk.journal() if line.word == "begun")
    assert [b for b, times in begun.items() if times > 1] == []


def is_convicted(history: list[Commit]) -> bool:
    return any(isinstance(e, CommandConvicted) for _, e in events_of(history))


def faults_of(history: list[Commit]) -> list[str]:
    """What is wrong with a walk that met any number of deaths."""
    found = illegalities(FIVE_STEPS_TABLE, history)
    if not is_convicted(history) and len(completed(history)) != len(STEPS):
        found.append(f"{len(completed(history))} steps are completed")
    return found
