"""Reads STATE and does what follows from it."""

import asyncio
import logging
from collections.abc import Iterator, Sequence

from waybook.engine.ports import Clock, Notice, Notices, PortMisconfigured
from waybook.events.codec import Codec
from waybook.events.errors import TerminalError
from waybook.events.headers import SCHEMAS
from waybook.events.subjects import RunKey, parse_state_subject
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.effects import ArmTimer, Effect
from waybook.services.scheduler.following import WANTED, by_server_clock, follow, matters
from waybook.services.scheduler.runs import Runs, Unreadable

log = logging.getLogger(__name__)

BATCH = 500
SIDE_BY_SIDE = 64
OLD_MS = 600_000
"""Timers of commits older than that are armed only when their run still waits for them.

So it is after an outage, and when the consumer's position was lost: years of timers would be armed, all due at once.
"""


class Relay:
    """One pass after the other over what STATE brought since."""

    name = "relay"

    def __init__(self, notices: Notices, runs: Runs, doer: Doer, codec: Codec, clock: Clock) -> None:
        self._notices = notices
        self._runs = runs
        self._doer = doer
        self._codec = codec
        self._clock = clock
        self._undone: Sequence[Notice] = ()

    @property
    def busy(self) -> bool:
        """Whether something is being done that a stop should not cut short."""
        return bool(self._undone)

    async def step(self, timeout_s: float) -> int:
        """Looks at what there is, waits up to `timeout_s` for it, and does what follows; how many commits mattered.

        Raises PortError; the next call does the same again.
        """
        if not self._undone:
            self._undone = [n for n in await self._pull(timeout_s) if matters(n.headers)]
        done = self._undone
        if done:
            found: list[Effect] = []
            for some in _portions(done):
                for effects in await asyncio.gather(*(self._effects(notice) for notice in some)):
                    found += effects
            await self._doer.do(found)
            await self._notices.ack(done)
            self._undone = ()
        return len(done)

    async def _pull(self, timeout_s: float) -> Sequence[Notice]:
        found = await self._notices.pull(BATCH, timeout_s)
        await self._notices.ack([n for n in found if not matters(n.headers)])
        return found

    async def _effects(self, notice: Notice) -> Sequence[Effect]:
        key = parse_state_subject(notice.subject)
        try:
            record = await self._notices.read(notice)
            if record is None:
                log.error("a commit is gone", extra={"action": "relay_commit_gone", "sequence": notice.sequence})
                return ()
            commit, indexes = self._codec.decode_known(record.payload, WANTED, record.headers, record.subject)
        except PortMisconfigured:
            raise
        except TerminalError as error:
            # Nothing may hold all other runs up. Reconciliation finds its timers when a newer program reads them.
            log.error(
                "a commit cannot be read",
                extra={"action": "relay_commit_unreadable", "run": str(key), "error": str(error),
                       "schemas": notice.headers.get(SCHEMAS)},
            )  # fmt: skip
            return ()
        effects = [
            by_server_clock(effect, commit.at, notice.stored_at)
            for effect in follow(key, commit, record.headers, indexes)
        ]
        if notice.stored_at < self._clock.now() - OLD_MS and any(isinstance(x, ArmTimer) for x in effects):
            return await self._still_wanted(key, effects)
        return effects

    async def _still_wanted(self, key: RunKey, effects: Sequence[Effect]) -> Sequence[Effect]:
        try:
            pending = {timer.name for timer in await self._runs.pending_timers(key)}
        except Unreadable as error:
            log.error("a run cannot be read", extra={"action": "relay_run_unreadable", "error": str(error)})
            return effects
        return [x for x in effects if not isinstance(x, ArmTimer) or x.timer.name in pending]


def _portions(notices: Sequence[Notice]) -> Iterator[Sequence[Notice]]:
    for start in range(0, len(notices), SIDE_BY_SIDE):
        yield notices[start : start + SIDE_BY_SIDE]
