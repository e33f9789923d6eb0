"""System aggregates in one process: read from the leader, decided one append at a time, what waits merged."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any

import msgspec

from waybook.engine.aggregates.grants import Grants, grants_of
from waybook.engine.aggregates.keys import grants_key, policy_key, thread_key
from waybook.engine.aggregates.ledger import Ledger, ledger_of, reservation_parts
from waybook.engine.aggregates.policy import policy_of
from waybook.engine.aggregates.requests import Asked
from waybook.engine.aggregates.thread import thread_of
from waybook.engine.inputs import Outcome, World
from waybook.engine.needs import GRANTS, POLICY, RESERVATION, THREAD
from waybook.engine.ports import AppendConflict
from waybook.engine.run import Run
from waybook.events.subjects import RunKey
from waybook.services.walker.lifecycle import Lifecycle

KEPT = 1_000
"""Folded aggregates that stay in memory, the most recently used; each is read anew from the leader all the same."""

MOST_MERGED = 200
"""Requests in one commit."""

_Waiting = tuple[Asked, Grants | None, "asyncio.Future[Answered]"]


class Answered(msgspec.Struct, frozen=True):
    """What came of a request, and the aggregate after it; None where it does not exist."""

    outcome: Outcome
    run: Run | None


class Aggregates:
    """Reads and changes aggregates. `spawn` starts a task that ends with the process's walker."""

    def __init__(
        self, lifecycle: Lifecycle, spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    ) -> None:
        self._lifecycle = lifecycle
        self._spawn = spawn
        self._known: dict[RunKey, Run] = {}
        self._waiting: dict[RunKey, list[_Waiting]] = {}

    async def look(self, key: RunKey) -> Run | None:
        """The aggregate by the leader's word; None when there is none yet. Raises PortError."""
        run = self._known.get(key)
        while not await self._lifecycle.confirmed(key, run):
            run = await self._lifecycle.load(key, run)
        self._keep(key, run)
        return run

    async def see(self, world: World, key: RunKey, thread: str | None, names: Collection[str]) -> World:
        """`world` with the aggregates of these names (`waybook.engine.needs`) that concern a run. Raises PortError."""
        read: dict[str, Any] = {}
        if POLICY in names:
            read["policy"] = policy_of(await self.look(policy_key(key.tenant)))
        if GRANTS in names:
            read["grants"] = grants_of(await self.look(grants_key(key.tenant)))
        if THREAD in names:
            read["thread"] = thread_of(await self.look(thread_key(key.tenant, thread or key.run)))
        if reservations := [name.removeprefix(RESERVATION) for name in names if name.startswith(RESERVATION)]:
            read["ledgers"] = {one: await self._ledger(key.tenant, one) for one in reservations}
        return msgspec.structs.replace(world, **read) if read else world

    async def _ledger(self, tenant: str, reservation: str) -> Ledger:
        agent, run, _ = reservation_parts(reservation)
        return ledger_of(await self.look(RunKey(tenant, agent, run)))

    async def ask(self, key: RunKey, asked: Asked, grants: Grants | None = None) -> Answered:
        """Decides on a request together with what else waits for this aggregate, and appends.

        Raises PortError; whether it was stored is not known then, and asking again is safe: a reservation is one of
        its execution, a command is applied once.
        """
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append((asked, grants, future))
        else:
            self._waiting[key] = [(asked, grants, future)]
            self._spawn(self._work(key))
        return await future

    async def _work(self, key: RunKey) -> None:
        waiting = self._waiting[key]
        batch: list[_Waiting] = []
        try:
            while waiting:
                batch = _alike(waiting[:MOST_MERGED])
                del waiting[: len(batch)]
                await self._decide(key, batch)
                batch = []
        finally:
            del self._waiting[key]
            for _, _, future in (*batch, *waiting):
                future.cancel()

    async def _decide(self, key: RunKey, batch: list[_Waiting]) -> None:
        requests, grants = [asked for asked, _, _ in batch], batch[0][1]
        try:
            while True:
                run = self._known.get(key)
                try:
                    committed = await self._lifecycle.change(key, run, requests, grants)
                except AppendConflict:
                    self._keep(key, await self._lifecycle.load(key, run))
                    continue
                if committed.appended or await self._lifecycle.confirmed(key, run):
                    break
                self._keep(key, await self._lifecycle.load(key, run))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            self._known.pop(key, None)  # it may be stored
            for _, _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        self._keep(key, committed.run)
        for (_, _, future), outcome in zip(batch, committed.decision.outcomes, strict=True):
            if not future.done():
                future.set_result(Answered(outcome, committed.run))

    def _keep(self, key: RunKey, run: Run | None) -> None:
        self._known.pop(key, None)
        if run is None:
            return
        self._known[key] = run
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]


def _alike(waiting: list[_Waiting]) -> list[_Waiting]:
    """The first ones that are decided by the same grants; who may decide was read for each."""
    for number, (_, grants, _) in enumerate(waiting):
        if grants != waiting[0][1]:
            return waiting[:number]
    return waiting
