"""System aggregates that are looked at again and again: only what is new is read, by the leader's word."""

from waybook.engine.fold import fold_all
from waybook.engine.ports import StateLog
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.headers import COMMIT
from waybook.events.subjects import RunKey, state_subject

KEPT = 1_000
"""Aggregates that stay folded, the most recently asked for."""


class Watched:
    """Folded aggregates of one process."""

    def __init__(self, log: StateLog, codec: Codec | None = None) -> None:
        self._log = log
        self._codec = codec or Codec()
        self._known: dict[RunKey, Run] = {}

    async def look(self, key: RunKey) -> Run | None:
        """The aggregate as the leader has it; None when there is none yet. Raises PortError."""
        run = self._known.pop(key, None)
        tail = await self._log.tail(state_subject(key))
        while tail is not None and (run is None or run.sequence < tail.sequence):
            before = run.sequence if run is not None else 0
            stored = [
                (self._codec.decode(r.payload, r.headers, r.subject), r.sequence, r.headers.get(COMMIT, ""))
                async for r in self._log.history(state_subject(key), before)
            ]
            run = fold_all(run, stored, key=key)
        if run is not None:
            self._known[key] = run
            while len(self._known) > KEPT:
                del self._known[next(iter(self._known))]
        return run
