"""Worker processes of a case: each a Walker with a memory of its own, behind a fuse, its steps behind the gate."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from tests.conformance.pipeline.effects import ScriptedEffects
from tests.conformance.pipeline.fuse import Fuse, FusedHeartbeat, fused
from tests.conformance.pipeline.gate import Body, Gate
from tests.conformance.pipeline.outside import Pulls, Traffic
from tests.conformance.pipeline.script import Script

from waybook.agents.context import StepContext
from waybook.agents.definition import AgentDefinition
from waybook.agents.effects import EffectAdapter, Effects
from waybook.agents.reading import StepBody
from waybook.agents.signature import Signature
from waybook.engine.aggregates.sender import Rate
from waybook.services.walker.walker import Walker, WalkerOptions, WalkerPorts

CONTEXT = "conformance_context"
EFFECTS = "conformance_effects"


class Worker:
    """One worker: `kill` ends it as SIGKILL would, `stop` as SIGSTOP would, `dismiss` at the end of the case."""

    def __init__(self, name: str, walker: Walker, fuse: Fuse, heartbeat: FusedHeartbeat) -> None:
        self.name = name
        self._walker = walker
        self._fuse = fuse
        self._heartbeat = heartbeat
        self._task: asyncio.Task[None] = asyncio.create_task(walker.run(), name=name)

    @property
    def lives(self) -> bool:
        return not self._fuse.blown

    @property
    def works(self) -> bool:
        return self.lives and self._fuse.stopped.is_set()

    def kill(self) -> None:
        """Nothing of it reaches anything from now on; its leases run out."""
        self._fuse.blow()

    def bury(self) -> None:
        """The fuse has blown: heartbeats end, its tasks go without a word."""
        self._heartbeat.drop_all()
        asyncio.get_running_loop().call_soon(self._task.cancel)

    def stop(self) -> None:
        """SIGSTOP: it does nothing and its heartbeats stop, until `cont`."""
        self._fuse.stopped.clear()
        self._heartbeat.drop_all()

    def cont(self) -> None:
        self._fuse.stopped.set()

    async def retire(self) -> None:
        """A graceful stop: it gives back what it runs."""
        await self._walker.stop()
        await asyncio.wait([self._task])
        self._fuse.blow()

    def standing(self, pulls: Pulls) -> str:
        """What it holds of what it may hold, and how it pulls: why it may not take a command that waits."""
        state = self._walker.state
        slots = ", ".join(f"{name} {state.taken[name]} of {slots} taken" for name, slots in state.slots.items())
        ended = "" if not self._task.done() else ", ended" if self.works else ", dead"
        sick = "" if state.healthy else f", {self._walker.problem}"
        alone = ", a suspect is alone" if self._walker.solitude.engaged else ""
        return f"{self.name}: {slots}, pulls {pulls.under_way} of {pulls.begun}{alone}{sick}{ended}"

    def problem(self) -> BaseException | None:
        """What broke it for a reason of the program's own."""
        if self._fuse.blown or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def dismiss(self) -> BaseException | None:
        """The end of the case: its tasks are cancelled. What broke it, if anything did."""
        problem = self.problem()
        self._fuse.blow()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        return problem


def start_worker(
    name: str,
    definition: AgentDefinition,
    ports: WalkerPorts,
    *,
    provides: Mapping[type, Any],
    gate: Gate,
    traffic: Traffic,
    script: Script,
    effects: ScriptedEffects,
    mails: EffectAdapter,
    offset_ms: int = 0,
    arrivals: Rate | None = None,
) -> Worker:
    """A new process with an empty memory that takes commands."""
    worker: list[Worker] = []
    fuse = Fuse(lambda: worker[0].bury())
    behind = fused(ports, fuse, traffic, name, offset_ms)
    gated = msgspec.structs.replace(
        definition,
        bodies={
            step: _gated(body, name, fuse, gate, script, traffic, effects) for step, body in definition.bodies.items()
        },
    )
    options = WalkerOptions(name=name, pull_s=0.5, strict=True, arrivals=arrivals)
    walker = Walker(
        [gated], behind, provides=provides, effects={**effects.adapters(fuse), "mail": mails}, options=options
    )
    assert isinstance(behind.heartbeat, FusedHeartbeat)
    worker.append(Worker(name, walker, fuse, behind.heartbeat))
    return worker[0]


def _gated(
    body: StepBody,
    worker: str,
    fuse: Fuse,
    gate: Gate,
    script: Script,
    traffic: Traffic,
    effects: ScriptedEffects,
) -> StepBody:
    """The step's body behind the gate, its work as the script has it."""

    async def function(agent: Any, **arguments: Any) -> Any:
        context: StepContext = arguments.pop(CONTEXT)
        outside: Effects = arguments.pop(EFFECTS)
        command = traffic.command_of(context.key, context.action)
        waiting = Body(
            run=context.key,
            step=body.name,
            action=context.action,
            worker=worker,
            command=command,
            lives=lambda: not fuse.blown,
            branch=context.branch,
        )
        try:
            order = await gate.enter(waiting)
            await effects.make(body.name, context, outside)
            return await script.work(body, agent, arguments, context, waiting, order, fuse)
        finally:
            gate.leave(waiting)

    injected = {**body.signature.injected, CONTEXT: StepContext, EFFECTS: Effects}
    signature = msgspec.structs.replace(body.signature, injected=injected)
    assert isinstance(signature, Signature)
    return msgspec.structs.replace(body, function=function, signature=signature, is_async=True)
