"""A process of the crash kit: a walker and a scheduler with an empty memory, which can be killed."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from waybook.adapters.memory.heartbeat import MemoryHeartbeat
from waybook.agents.definition import AgentDefinition
from waybook.agents.effects import EffectAdapter
from waybook.engine.inputs import Completed, Failed
from waybook.engine.ports import ANY_LANE, Clock, Objects
from waybook.engine.run import Action, Run
from waybook.events.ending import end
from waybook.services.scheduler.scheduler import Scheduler, SchedulerOptions, SchedulerPorts
from waybook.services.walker.effects import EffectsDesk
from waybook.services.walker.execution import Executor
from waybook.services.walker.walker import Walker, WalkerOptions, WalkerPorts
from waybook.testing.faults import Faults, FaultyEffect, faulty_ports
from waybook.testing.faulty_scheduler import faulty_scheduler_ports
from waybook.testing.kit.world import World

LOOK_AGAIN_MS = 15 * 60_000
"""A fire that is early by a clock that went wrong is looked at again after so long."""


class Process:
    """One worker process. `killed` is set when it reached the boundary at which it dies."""

    def __init__(
        self,
        world: World,
        agents: Sequence[AgentDefinition],
        provides: Mapping[type, Any],
        effects: Mapping[str, EffectAdapter],
    ) -> None:
        self.faults = Faults()
        self.killed = asyncio.Event()
        self.reached = False
        self._alive = True
        self._heartbeat = MemoryHeartbeat(world.queue, world.clock, self._lost)
        ports = WalkerPorts(
            state=world.state,
            commands=world.commands,
            replies=world.replies,
            notes=world.notes,
            objects=world.objects,
            heartbeat=self._heartbeat,
            clock=world.process_clock,
        )
        ports = faulty_ports(ports, self.faults)
        provides = {Objects: ports.objects, **provides}
        options = WalkerOptions(name="kit", pull_s=0.02, strict=True)
        adapters = {name: FaultyEffect(name, adapter, self.faults) for name, adapter in effects.items()}
        self.walker = Walker(agents, ports, provides=provides, effects=adapters, options=options)
        self.walker.executor = _Executor(provides, world.process_clock, self.walker.effects, self.faults)
        relayed = SchedulerPorts(world.state, world.notices, world.timers, world.commands, world.process_clock)
        self._scheduler = Scheduler(
            faulty_scheduler_ports(relayed, self.faults),
            options=SchedulerOptions(pull_s=60.0, exclusive=True, look_again_ms=LOOK_AGAIN_MS),
        )
        self._world = world
        self._running: asyncio.Task[None] | None = None

    @property
    def broken(self) -> BaseException | None:
        """What ended it, when nobody killed it."""
        if self._running is None or not self._running.done() or self._running.cancelled():
            return None
        error = self._running.exception()
        return error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error

    @property
    def busy(self) -> bool:
        """Whether it decides, runs a body, or means to look again."""
        return any(actor.active for actor in self.walker.company())

    def look_again(self) -> None:
        """The clock was moved on: what waits for a while is decided again."""
        for actor in list(self.walker.company()):
            actor.look_again()

    async def begin(self) -> None:
        """Starts it, as the only owner of what its predecessor left."""
        await self._world.queue.ensure_consumers(ANY_LANE)
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.walker.run())
            group.create_task(self._scheduler.run())

    async def strike(self) -> None:
        """What is armed at the boundary: the clock jumps, or the process dies, or both."""
        how = self._world.disturbance
        if how.jump_ms:
            self._world.process_clock.jump(how.jump_ms, how.right_after_ms)
        self.reached = True
        if how.dies:
            await self.die()

    async def die(self) -> None:
        """What is armed at the boundary: nothing that it does from here on reaches anybody."""
        self._alive = False
        self.faults.dead = True
        self.killed.set()
        await asyncio.Event().wait()

    async def end(self) -> None:
        """Takes away what is left of it; its leases lapse."""
        assert self._running is not None
        self._alive = False
        self.faults.dead = True
        self._heartbeat.lose()
        await end([self._running])

    def _lost(self) -> None:
        if self._alive:
            self.walker.claims_lost()


class _Executor(Executor):
    """Runs bodies with a boundary before and after each."""

    def __init__(self, provides: Mapping[type, Any], clock: Clock, effects: EffectsDesk, faults: Faults) -> None:
        super().__init__(provides, clock, effects)
        self._faults = faults

    async def run(self, definition: AgentDefinition, run: Run, action: Action) -> Completed | Failed:
        await self._faults.reached("step.begun", action.step)
        result = await super().run(definition, run, action)
        await self._faults.reached("step.ended", action.step)
        return result
