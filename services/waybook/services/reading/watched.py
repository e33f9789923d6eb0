"""System aggregates that are looked at again and again: only what is new is read, by the leader's word."""

import asyncio

from waybook.engine.ports import Clock, Snapshots, StateLog
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.subjects import RunKey
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.snapshots import LongRuns

KEPT = 1_000
"""Aggregates that stay folded, the most recently asked for."""


class Watched:
    """Folded aggregates of one process.

    With `snapshots` a process that begins on a busy day reads what came after the last snapshot of a ledger, instead
    of all that was spent since midnight.
    """

    def __init__(self, log: StateLog, clock: Clock, snapshots: Snapshots | None = None) -> None:
        long_runs = LongRuns(snapshots, asyncio.create_task) if snapshots is not None else None
        self._lifecycle = Lifecycle(log, Codec(), clock, "reader", long_runs=long_runs)
        self._known: dict[RunKey, Run] = {}

    async def look(self, key: RunKey) -> Run | None:
        """The aggregate as the leader has it; None when there is none yet. Raises PortError.

        Many may look at the same one at once; each goes on from what is known of it.
        """
        run = self._known.get(key)
        while not await self._lifecycle.confirmed(key, run):
            run = await self._lifecycle.load(key, run)
        if run is not None:
            self._keep(key, run)
        return run

    def _keep(self, key: RunKey, run: Run) -> None:
        known = self._known.pop(key, None)
        self._known[key] = run if known is None or known.sequence < run.sequence else known
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
