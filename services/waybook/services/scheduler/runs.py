"""Runs as STATE has them, for whoever only reads."""

from waybook.engine.fold import Stored, fold_all
from waybook.engine.ports import PortMisconfigured, StateLog, TimerRef
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.errors import TerminalError
from waybook.events.headers import COMMIT
from waybook.events.subjects import RunKey, state_subject


class Unreadable(TerminalError):
    """A run's history cannot be folded by this program; its timers are left as they are."""


class Runs:
    """Folds runs; folding needs no definition."""

    def __init__(self, log: StateLog, codec: Codec) -> None:
        self._log = log
        self._codec = codec

    async def load(self, key: RunKey) -> Run | None:
        """The run by the leader's word; None when there is none. Raises PortError, Unreadable."""
        subject = state_subject(key)
        run: Run | None = None
        while True:
            run = await self._read_on(key, subject, run)
            tail = await self._log.tail(subject)
            if (tail.sequence if tail is not None else 0) <= (run.sequence if run is not None else 0):
                return run

    async def _read_on(self, key: RunKey, subject: str, run: Run | None) -> Run | None:
        history: list[Stored] = []
        try:
            async for record in self._log.history(subject, run.sequence if run is not None else 0):
                commit = self._codec.decode(record.payload, record.headers, record.subject)
                history.append((commit, record.sequence, record.headers.get(COMMIT, "")))
            return fold_all(run, history, key=key)
        except PortMisconfigured:
            raise
        except TerminalError as error:
            raise Unreadable(str(error)) from error

    async def pending_timers(self, key: RunKey) -> list[TimerRef]:
        """The timers that the run waits for. Raises as `load`."""
        run = await self.load(key)
        if run is None:
            return []
        return [TimerRef(key, name, timer.timer_class, timer.due) for name, timer in run.timers.items()]
