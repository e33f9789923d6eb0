"""The scheduler: reads STATE, hands fires over, makes its rounds. It stores nothing but timers and commands."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from waybook.engine.hooks import Hook, SchedulerState, ignore
from waybook.engine.ports import Clock, CommandQueue, Notices, PortError, StateLog, Timers
from waybook.events.codec import Codec
from waybook.events.ending import end
from waybook.events.engine import TimerClass
from waybook.services.scheduler.allowance import TokenBucket
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.fires import Fires
from waybook.services.scheduler.firing import LOOK_AGAIN_MS
from waybook.services.scheduler.hints import Hints, NoHints
from waybook.services.scheduler.recurring import Planned, Recurring
from waybook.services.scheduler.relay import Relay
from waybook.services.scheduler.rounds import STILL_MS, Rounds
from waybook.services.scheduler.runs import Runs

log = logging.getLogger(__name__)

CLASSES: tuple[TimerClass, ...] = ("send", "deadline", "retry", "wait")
RESTARTS: frozenset[TimerClass] = frozenset({"retry", "wait"})
PORT_PAUSE_S = 0.5
ROUND_AGAIN_S = 5.0
STOP_S = 5.0  # what is under way at a stop takes milliseconds, unless a server is away


class SchedulerPorts(msgspec.Struct, frozen=True):
    """The outside of a scheduler."""

    state: StateLog
    notices: Notices
    timers: Timers
    commands: CommandQueue
    clock: Clock
    hints: Hints = NoHints()


class SchedulerOptions(msgspec.Struct, frozen=True):
    """`restarts_per_s` bounds retries and ends of waits together, `burst` how many of them at once.

    `still_ms` and `look_again_ms`: see the constants of that name. `round_s`: seconds between two rounds. `pull_s`: one
    pull's patience. `exclusive`: no other scheduler is at work, so what a killed predecessor held comes back at once.
    """

    restarts_per_s: float = 50.0
    burst: int = 100
    round_s: float = 300.0
    still_ms: int = STILL_MS
    look_again_ms: int = LOOK_AGAIN_MS
    pull_s: float = 5.0
    exclusive: bool = False


class Scheduler:
    """Works from `run()` until `stop()`. Any number may run; each does a share of the work.

    `plans` are the schedules of agents, whose runs it starts.

    While a port does not answer it waits and goes on where it was: everything it does may be done twice.
    """

    def __init__(
        self,
        ports: SchedulerPorts,
        *,
        options: SchedulerOptions | None = None,
        codec: Codec | None = None,
        hook: Hook = ignore,
        plans: Sequence[Planned] = (),
    ) -> None:
        self._ports = ports
        self._options = options or SchedulerOptions()
        self._hook = hook
        codec = codec or Codec()
        self._runs = Runs(ports.state, codec)
        self._doer = Doer(ports.timers, ports.commands, ports.clock, ports.hints, hook)
        self.relay = Relay(ports.notices, self._runs, self._doer, codec, ports.clock)
        self.rounds = Rounds(
            ports.hints, self._runs, ports.timers, self._doer, ports.clock, still_ms=self._options.still_ms
        )
        self.fires: Sequence[Fires] = ()
        self._recurring = (Recurring(plans, self._doer, ports.clock),) if plans else ()
        self._stopping = asyncio.Event()
        self._outages: dict[str, PortError] = {}

    async def run(self) -> None:
        """Works until `stop()`. Raises PortMisconfigured, and what a defect of its own raises."""
        await self._insist("consumers", self._ensure)
        bucket = TokenBucket(self._options.restarts_per_s, self._options.burst, asyncio.get_running_loop().time())
        self.fires = [
            Fires(kind, self._ports.timers, self._doer, self._ports.clock,
                  bucket=bucket if kind in RESTARTS else None, look_again_ms=self._options.look_again_ms, hook=self._hook)
            for kind in CLASSES
        ]  # fmt: skip
        parts: tuple[Relay | Fires | Recurring, ...] = (self.relay, *self.fires, *self._recurring)
        works = {asyncio.create_task(self._loop(one), name=one.name): one for one in parts}
        rounds = asyncio.create_task(self._make_rounds())
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait({*works, rounds, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self._stopping.set()
            if busy := [task for task, one in works.items() if one.busy]:
                await asyncio.wait(busy, timeout=STOP_S)
        finally:
            await end((*works, rounds, stopped))
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Asks `run` to end after what is under way."""
        self._stopping.set()

    @property
    def state(self) -> SchedulerState:
        """How it stands at this moment."""
        return SchedulerState(not self._outages)

    async def _ensure(self) -> None:
        await self._ports.timers.ensure_consumers(recreate=self._options.exclusive)
        await self._ports.notices.ensure_consumer(rewind=self._options.exclusive)

    async def _loop(self, work: Relay | Fires | Recurring) -> None:
        while not self._stopping.is_set():
            try:
                await work.step(self._options.pull_s)
            except PortError as error:
                await self._outage(work.name, error)
            else:
                self._healthy(work.name)
            await asyncio.sleep(0)

    async def _make_rounds(self) -> None:
        while not self._stopping.is_set():
            pause_s = self._options.round_s
            try:
                await self.rounds.reconcile()
                await self.rounds.watch()
            except PortError as error:
                await self._outage("rounds", error)
                pause_s = min(pause_s, ROUND_AGAIN_S)
            else:
                self._healthy("rounds")
            try:
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            except TimeoutError:
                continue

    async def _insist(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        while not self._stopping.is_set():
            try:
                await work()
            except PortError as error:
                await self._outage(name, error)
            else:
                self._healthy(name)
                return

    async def _outage(self, name: str, error: PortError) -> None:
        if not self._outages:
            log.warning("a port does not answer", extra={"action": "port_unhealthy", "error": str(error)})
        self._outages[name] = error
        await asyncio.sleep(PORT_PAUSE_S)

    def _healthy(self, name: str) -> None:
        if self._outages.pop(name, None) is not None and not self._outages:
            log.info("the ports answer again", extra={"action": "port_healthy"})
