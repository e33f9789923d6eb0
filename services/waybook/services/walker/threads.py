"""What stands beside a run: the context of its thread, and display events on their way to who watches."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.aggregates.thread import holds_change
from waybook.engine.ports import Notes
from waybook.engine.run import Action, Run
from waybook.events.engine import ContextChange, ThreadContextChanged
from waybook.events.subjects import RunKey
from waybook.events.typed import DisplayEvent
from waybook.services.walker.lifecycle import Lifecycle

Change = tuple[str, tuple[ContextChange, ...]]


class Threads:
    """Reads and changes the contexts of threads, which are kept by the system aggregate `@thread`."""

    def __init__(self, lifecycle: Lifecycle, notes: Notes) -> None:
        self._lifecycle = lifecycle
        self._notes = notes

    async def thread_context(self, run: Run) -> Mapping[str, Any]:
        """The context of the run's thread by the leader's word. Raises PortError."""
        key = _thread(run.key, run)
        thread = await self._lifecycle.load(key)
        while not await self._lifecycle.confirmed(key, thread):
            thread = await self._lifecycle.load(key, thread)
        return thread.context if thread is not None else {}

    async def carry_over(self, key: RunKey, run: Run, changes: Sequence[Change]) -> None:
        """Applies what the run's executions changed to its thread; what is applied already stays. Raises PortError."""
        facts = [ThreadContextChanged(agent=key.agent, run=key.run, name=n, changes=c) for n, c in changes]
        thread = await self._lifecycle.load(_thread(key, run))
        for fact in facts:
            if thread is None or not holds_change(thread, fact):
                await self._lifecycle.record(_thread(key, run), fact)

    async def display(
        self, definition: AgentDefinition, run: Run, action: Action, event: DisplayEvent, offset: int
    ) -> None:
        """Sends a display event to TRACE, from where clients read it; best effort."""
        record = {
            "kind": "display",
            "run": str(run.key),
            "step": action.step,
            "action": action.id,
            "attempt": action.attempt,
            "offset": offset,
            "event": type(event).__name__,
            "body": msgspec.Raw(msgspec.json.encode(event)),
        }
        await self._notes.trace(run.key.tenant, "display", msgspec.json.encode(record))


def _thread(key: RunKey, run: Run) -> RunKey:
    """The aggregate of the run's thread; a run without one is a thread of its own."""
    return RunKey(key.tenant, "@thread", run.thread or key.run)
