"""What stands beside a run: the context of its thread, and display events on their way to who watches."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.aggregates.thread import holds_change
from waybook.engine.ports import Notes
from waybook.engine.run import Action, Run
from waybook.events.display import display_kind
from waybook.events.engine import ContextChange, ThreadContextChanged
from waybook.events.subjects import RunKey
from waybook.events.typed import DisplayEvent
from waybook.services.walker.correspondence import Correspondence
from waybook.services.walker.lifecycle import Committed, Lifecycle

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
        """Sends a display event to TRACE, from where clients read it; best effort.

        Others get their turn after each: a text of many pieces is often there at once, and would fill the memory unsent.
        """
        record = {
            "kind": "display",
            "run": str(run.key),
            "step": action.step,
            "execution": action.execution,
            "action": action.id,
            "attempt": action.attempt,
            "offset": offset,
            "event": type(event).__name__,
            "body": msgspec.Raw(msgspec.json.encode(event)),
        }
        await self._notes.trace(run.key.tenant, display_kind(run.key), msgspec.json.encode(record))
        await asyncio.sleep(0)


class Aside:
    """What a run leaves beside itself after its commits: remarks in TRACE, changes of its thread's context."""

    def __init__(self, key: RunKey, threads: Threads, correspondence: Correspondence) -> None:
        self._key = key
        self._threads = threads
        self._correspondence = correspondence
        self._carried = 0  # thread changes of the run that surely reached the thread

    async def after(self, committed: Committed) -> None:
        """Done before the command is acknowledged; may be repeated. Raises PortError."""
        if committed.decision.diagnostics:
            await self._correspondence.remark(self._key, committed.decision.diagnostics)
        run = committed.run
        if run is not None and len(run.thread_changes) > self._carried:
            await self._threads.carry_over(self._key, run, run.thread_changes[self._carried :])
            self._carried = len(run.thread_changes)


def _thread(key: RunKey, run: Run) -> RunKey:
    """The aggregate of the run's thread; a run without one is a thread of its own."""
    return RunKey(key.tenant, "@thread", run.thread or key.run)
