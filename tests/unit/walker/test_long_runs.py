"""Long runs are loaded from a snapshot and what came after it, when there is one that the log agrees with."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import msgspec
import pytest

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.snapshots import MemorySnapshots
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.engine.definition import Definition, Parameter, Step, Table
from waybook.engine.inputs import Completed, Delivered, Output, Restart, Start, World
from waybook.engine.ports import Draft, Record
from waybook.engine.run import Run
from waybook.engine.snapshot import EVERY
from waybook.events.codec import Codec, FieldPlace
from waybook.events.command import Command
from waybook.events.engine import Claim
from waybook.events.subjects import RunKey
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.snapshots import LongRuns

KEY = RunKey("t", "loop", "r1")
LOOP = Definition.build(
    agent="loop",
    hash="0123456789abcdef",
    steps=(Step("turn", (Parameter("round", ("Round",)),), frozenset({"Round"})),),
    table=Table("running", frozenset({"running", "failed"}), frozenset({"completed", "cancelled"}), ()),
    kinds={"Round": "start"},
    decode=lambda event, schema, payload: msgspec.json.decode(payload),
)


class CountingLog(MemoryStateLog):
    """A log that counts what is read of it."""

    read = 0

    async def history(self, subject: str, after: int = 0) -> AsyncIterator[Record]:
        async for record in super().history(subject, after):
            self.read += 1
            yield record


class Rot13:
    """A cipher, so that snapshots would hold what commits do not."""

    def encrypt(self, place: FieldPlace, value: bytes) -> str:
        return value.decode()

    def decrypt(self, place: FieldPlace, text: str) -> bytes:
        return text.encode()


class Office:
    """A lifecycle over ports in memory, and a run of any length."""

    def __init__(self, codec: Codec | None = None) -> None:
        self.log = CountingLog(ManualClock())
        self.snapshots = MemorySnapshots()
        self.tasks: list[asyncio.Task[None]] = []
        self.codec = codec
        self.lifecycle = self.anew()

    def anew(self) -> Lifecycle:
        """As in a new process."""
        return Lifecycle(
            self.log, self.codec or Codec(), ManualClock(), "test", long_runs=LongRuns(self.snapshots, self._spawn)
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def walk(self, commits: int) -> Run:
        """The run after so many commits; what is kept of it is there."""
        run: Run | None = await self.lifecycle.load(KEY)
        for number in range(run.version if run is not None else 0, commits):
            output = Output("Round", 1, msgspec.Raw(b'{"n":%d}' % number), None)
            one: Any
            if run is None:
                command = Command(id="c", verb="start", issued_at=1, actor="t", payload=msgspec.Raw(b"{}"))
                one = Delivered(command, Start(output=output), Claim(1, 1, 1), 1)
            else:
                one = Completed(next(iter(run.open)), (output,))
            run = (await self.lifecycle.commit(LOOP, KEY, run, (one,), World())).run
            await asyncio.gather(*self.tasks)
        assert run is not None
        return run

    async def load(self) -> tuple[Run | None, int]:
        """The run as a new process loads it, and how many commits it read for that."""
        self.log.read = 0
        return await self.anew().load(KEY), self.log.read


async def test_a_long_run_is_loaded_from_its_snapshot() -> None:
    """Beyond the first page only the commits behind the snapshot are read, and the run is the same."""
    office = Office()
    run = await office.walk(5 * EVERY + 3)
    loaded, read = await office.load()
    assert loaded == run
    assert read == EVERY + 1 + 3


async def test_a_short_run_asks_for_no_snapshot() -> None:
    office = Office()
    run = await office.walk(EVERY - 1)
    assert (await office.load())[0] == run
    assert not office.snapshots.asked and not office.snapshots.kept


@pytest.mark.parametrize("damage", ["lost", "torn", "of another log"])
async def test_a_snapshot_that_is_wrong_costs_time_and_nothing_else(damage: str) -> None:
    """Lost, torn, or of a log that was restored from elsewhere: the whole history is folded."""
    office = Office()
    run = await office.walk(3 * EVERY)
    if damage == "lost":
        office.snapshots.kept.clear()
    elif damage == "torn":
        office.snapshots.kept[KEY] = office.snapshots.kept[KEY][:-10]
    else:
        other = Office()
        await other.log.append(Draft("state.g1.00.t.loop.r0", 0, b"{}", {}, "c"))
        await other.walk(3 * EVERY)
        office.snapshots.kept = other.snapshots.kept
    loaded, read = await office.load()
    assert loaded == run
    assert read >= 3 * EVERY


async def test_a_run_that_was_restarted_behind_its_snapshot_walks_its_new_walk() -> None:
    """The snapshot is of the first walk; what the new walk may bind comes of the commits behind it."""
    office = Office()
    run = await office.walk(2 * EVERY)
    command = Command(id="again", verb="restart", issued_at=1, actor="p", payload=msgspec.Raw(b"{}"))
    asked = Delivered(command, Restart(keep=tuple(list(run.actions)[:1])), Claim(2, 1, 1), 1, person=True)
    restarted = (await office.lifecycle.commit(LOOP, KEY, run, (asked,), World())).run
    assert restarted is not None and restarted.walk == 2
    loaded, read = await office.load()
    assert loaded == restarted
    assert read == EVERY + 1 + 1
    assert loaded is not None and len(loaded.visible["Round"]) < len(run.visible["Round"])


async def test_nothing_is_kept_where_personal_fields_are_sealed() -> None:
    """A snapshot would hold in the clear what the commits hold sealed."""
    office = Office(Codec(cipher=Rot13()))
    await office.walk(EVERY)
    assert not office.snapshots.kept
