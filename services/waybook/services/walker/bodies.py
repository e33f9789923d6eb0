"""The bodies of one run's steps that run in this process, and the tasks that they run in."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from functools import partial
from typing import Any

from waybook.agents.definition import AgentDefinition
from waybook.engine.inputs import Completed, Failed
from waybook.engine.run import Action, Run
from waybook.services.walker.execution import Executor

_Due = tuple[AgentDefinition, Run, Action]


class Bodies(Collection[str]):
    """Bodies by action id: one that has ended stays until its result is decided (`decided`).

    A body's task goes on with its result, and with the next body that this makes due: a run whose steps follow one
    another walks in one task. `go_on` decides a result and all else that waits, or answers False when another task
    does that already. `nudge` is called when a body ended without a result.
    """

    def __init__(
        self,
        executor: Executor,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        go_on: Callable[[Completed | Failed], Awaitable[bool]],
        nudge: Callable[[], None],
    ) -> None:
        self._executor = executor
        self._spawn = spawn
        self._go_on = go_on
        self._nudge = nudge
        self._tasks: dict[str, asyncio.Task[None] | None] = {}  # None: ended, or about to begin in the running task
        self._following: _Due | None = None
        self._follows = False
        self._stopping = False

    def __contains__(self, action: object) -> bool:
        return action in self._tasks

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, definition: AgentDefinition, run: Run, action: Action) -> None:
        """Starts a body: in the task that is deciding, after all that is to be decided there, else in a new one."""
        if self._follows and self._following is None:
            self._following = definition, run, action
            self._tasks[action.id] = None
        else:
            self._begin_apart(definition, run, action)

    def begin_apart(self) -> None:
        """More is to be decided first: the body that was to follow in this task begins in one of its own."""
        if self._following is not None:
            due, self._following = self._following, None
            self._begin_apart(*due)

    def _begin_apart(self, definition: AgentDefinition, run: Run, action: Action) -> None:
        task = self._tasks[action.id] = self._spawn(self._walk((definition, run, action)))
        task.add_done_callback(partial(self._ended, action.id))

    def decided(self, action: str) -> None:
        """Its result was decided."""
        self._tasks.pop(action, None)

    def cancel(self, action: str) -> None:
        """Stops a body whose action is no longer open, or no longer this process's."""
        _cancel(self._tasks.pop(action, None))

    def clear(self) -> None:
        """Stops all of them."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        self._following = None
        for task in tasks:
            _cancel(task)

    def stop(self, *, everything: bool, is_async: Callable[[str], bool]) -> None:
        """A graceful stop: none begins any more, coroutines are cancelled, with `everything` given up for lost."""
        self._stopping = True
        for action, task in list(self._tasks.items()):
            if everything or is_async(action):
                _cancel(task)
            if everything:
                self._tasks.pop(action, None)

    async def after(self, deciding: Coroutine[Any, Any, None]) -> None:
        """Decides in the running task and walks on in it, with the first body that is begun by that."""
        self._follows = True
        try:
            await deciding
        finally:
            self._follows = False
        due, self._following = self._following, None
        if due is not None:
            await self._walk(due)

    def leave(self) -> None:
        """The run leaves memory: what refers to it is let go, so that it is freed now, without the garbage collector."""
        del self._go_on, self._nudge

    async def _walk(self, due: _Due) -> None:
        """One body after the other, as each one's result makes the next due. Only while one runs is this cancelled."""
        task = asyncio.current_task()
        assert task is not None
        following: _Due | None = due
        while following is not None and await self._perform(task, *following):
            following, self._following = self._following, None

    async def _perform(self, task: asyncio.Task[None], definition: AgentDefinition, run: Run, action: Action) -> bool:
        """A body, and what its result makes of the run; whether another one may follow in this task."""
        if self._stopping or action.id not in self._tasks:
            self._tasks.pop(action.id, None)
            self._nudge()
            return False
        self._tasks[action.id] = task
        try:
            result = await self._executor.run(definition, run, action)
        except asyncio.CancelledError:
            self._ended(action.id, task)
            raise
        if action.id in self._tasks:
            self._tasks[action.id] = None
        self._follows = not task.cancelling()
        try:
            return await self._go_on(result)
        finally:
            self._follows = False

    def _ended(self, action: str, task: asyncio.Task[None]) -> None:
        """A body that was cancelled has no result to wait for."""
        if self._tasks.get(action) is task:
            del self._tasks[action]
            self._nudge()


def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
