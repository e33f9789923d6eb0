"""What is looked at again and again is read once, and a new process reads what came after the last snapshot."""

import asyncio
from collections.abc import AsyncIterator

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.snapshots import MemorySnapshots
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.engine.aggregates.keys import budget_key
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.requests import Asked, Learn
from waybook.engine.ports import Record
from waybook.engine.snapshot import EVERY
from waybook.events.codec import Codec
from waybook.events.engine import Spent
from waybook.services.reading.watched import Watched
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.snapshots import LongRuns

KEY = budget_key("main", "spend", 0)


class CountingLog(MemoryStateLog):
    """A log that counts what is read of it, and gives others their turn between two records."""

    read = 0

    async def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        async for record in super().history(subject, after):
            self.read += 1
            await asyncio.sleep(0)
            yield record


class Office:
    """A ledger of what was spent, and who looks at it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = CountingLog(self.clock)
        self.snapshots = MemorySnapshots()
        self._spent = 0

    async def spend(self, times: int) -> None:
        async with asyncio.TaskGroup() as group:
            lifecycle = Lifecycle(
                self.log, Codec(), self.clock, "test", long_runs=LongRuns(self.snapshots, group.create_task)
            )
            run = await lifecycle.load(KEY)
            for _ in range(times):
                self._spent += 1
                fact = Spent(run=f"r{self._spent}", action="1.0", amount=1, model="m")
                run = (await lifecycle.change(KEY, run, (Asked(Learn(fact)),))).run

    def watched(self, snapshots: MemorySnapshots | None = None) -> Watched:
        return Watched(self.log, self.clock, snapshots)

    async def look(self, watched: Watched) -> tuple[int, int]:
        """What was spent, and how many commits were read for it."""
        self.log.read = 0
        return ledger_of(await watched.look(KEY)).used, self.log.read


async def test_only_what_is_new_is_read_again() -> None:
    office = Office()
    watched = office.watched()
    assert await watched.look(KEY) is None
    await office.spend(5)
    assert await office.look(watched) == (5, 5)
    assert await office.look(watched) == (5, 0)
    await office.spend(2)
    assert await office.look(watched) == (7, 2)


async def test_many_that_look_at_once_each_read_what_is_new_alone() -> None:
    """Whoever looks does not take from the others what is known already."""
    office = Office()
    watched = office.watched()
    await office.spend(100)
    await watched.look(KEY)
    await office.spend(1)
    office.log.read = 0
    looked = await asyncio.gather(*(watched.look(KEY) for _ in range(10)))
    assert [ledger_of(run).used for run in looked] == [101] * 10
    assert office.log.read <= 10
    assert await office.look(watched) == (101, 0)


async def test_a_new_process_begins_at_the_last_snapshot() -> None:
    office = Office()
    for times in (EVERY, EVERY, EVERY, EVERY, EVERY, 3):
        await office.spend(times)
    assert await office.look(office.watched()) == (5 * EVERY + 3, 5 * EVERY + 3)
    assert await office.look(office.watched(office.snapshots)) == (5 * EVERY + 3, EVERY + 1 + 3)
