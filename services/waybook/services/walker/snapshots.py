"""Keeps long runs for the next process that reads them; disposable, and believed only where the log agrees."""

import asyncio
import hashlib
import inspect
import sys
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from waybook.engine.ports import Snapshots
from waybook.engine.run import Run
from waybook.engine.snapshot import is_due, pack, state_of, unpack
from waybook.events.subjects import RunKey

_FOLDING = (
    "waybook.engine.fold", "waybook.engine.run", "waybook.engine.context", "waybook.engine.definition",
    "waybook.engine.snapshot", "waybook.engine.aggregates.grants", "waybook.engine.aggregates.judged",
    "waybook.engine.aggregates.kept", "waybook.engine.aggregates.keys", "waybook.engine.aggregates.ledger",
    "waybook.engine.aggregates.outcomes", "waybook.engine.aggregates.policy", "waybook.engine.aggregates.sender",
    "waybook.engine.aggregates.thread", "waybook.events.aggregate", "waybook.events.approval", "waybook.events.codec",
    "waybook.events.commit", "waybook.events.engine", "waybook.events.fact", "waybook.events.registry",
    "waybook.events.subjects", "waybook.events.typed", "waybook.events.upcasters",
)  # fmt: skip
"""Modules whose text decides what a history folds to."""


@cache
def folding_code() -> str | None:
    """Names the code that folds, by its text; None where that cannot be read, and then nothing is kept."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    try:
        for name in _FOLDING:
            __import__(name)
            digest.update(inspect.getsource(sys.modules[name]).encode())
    except (OSError, TypeError):
        return None
    return digest.hexdigest()[:32]


class LongRuns:
    """Keeps runs in `port` every 200 commits, beside what else goes on (`spawn`), and finds them again."""

    def __init__(self, port: Snapshots, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._port = port
        self._spawn = spawn
        self._under_way: set[RunKey] = set()

    def after(self, run: Run) -> None:
        """To be called when a commit of the run is stored."""
        if not is_due(run.version) or run.key in self._under_way or run.ended:
            return
        code = folding_code()
        if code is not None:
            self._under_way.add(run.key)
            self._spawn(self._keep(run.key, state_of(run), run, code))

    async def _keep(self, key: RunKey, state: bytes, run: Run, code: str) -> None:
        try:
            await self._port.put(key, await asyncio.to_thread(pack, state, run, code))
        finally:
            self._under_way.discard(key)

    async def find(self, key: RunKey) -> Run | None:
        """The run as it was kept last by code like this one; the log has to be asked whether it is right."""
        code = folding_code()
        data = await self._port.get(key) if code is not None else None
        return unpack(data, key, code) if data is not None and code is not None else None
