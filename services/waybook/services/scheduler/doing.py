"""Carries effects out: timers armed and taken back, commands given. Each may be done again."""

import asyncio
from collections.abc import Sequence

import msgspec

from waybook.engine.hooks import CommandGiven, Hook, TimersArmed, ignore
from waybook.engine.ports import Clock, CommandQueue, Outgoing, Timers
from waybook.events.command import Command
from waybook.events.subjects import command_subject
from waybook.services.scheduler.effects import ArmTimer, CancelTimer, Effect, Give, StopSends
from waybook.services.scheduler.following import without_useless
from waybook.services.scheduler.hints import Hints

ACTOR = "relay"
SIDE_BY_SIDE = 64


class Doer:
    """Does what follows. Raises PortError; then any part may be done, and all of it may be done again."""

    def __init__(self, timers: Timers, commands: CommandQueue, clock: Clock, hints: Hints, hook: Hook = ignore) -> None:
        self._timers = timers
        self._commands = commands
        self._clock = clock
        self._hints = hints
        self._hook = hook
        self._slots = asyncio.Semaphore(SIDE_BY_SIDE)

    async def do(self, effects: Sequence[Effect]) -> None:
        """All of them; returns when they are stored."""
        wanted = without_useless(effects)
        arms = [one for one in wanted if isinstance(one, ArmTimer)]
        await self._all([self._arm(one) for one in arms])
        await self._all([self._cancel(one) for one in wanted if isinstance(one, CancelTimer)])
        gives = [one for one in wanted if isinstance(one, Give)]
        for stop in wanted:
            if isinstance(stop, StopSends):
                gives += await self._stops(stop)
        await self.give(gives)

    async def give(self, commands: Sequence[Give]) -> None:
        """Stores commands, each once for its id."""
        if not commands:
            return
        stored = await self._commands.publish_many([self._outgoing(one) for one in commands])
        for one, new in zip(commands, stored, strict=True):
            if new:
                self._hook(CommandGiven(one.verb))

    def _outgoing(self, one: Give) -> Outgoing:
        payload = one.payload if isinstance(one.payload, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(one.payload))
        command = Command(id=one.id, verb=one.verb, issued_at=self._clock.now(), actor=ACTOR, payload=payload)
        return Outgoing(command_subject(one.key, one.verb, issuer="relay"), msgspec.json.encode(command), one.id)

    async def _stops(self, stop: StopSends) -> list[Give]:
        runs = await self._hints.unsent(stop.tenant)
        return [Give(f"{stop.cause}/{key.agent}.{key.run}/continue", key, "continue") for key in runs]

    async def _arm(self, one: ArmTimer) -> None:
        async with self._slots:
            if await self._timers.arm(one.timer):
                self._hook(TimersArmed(one.timer.timer_class))

    async def _cancel(self, one: CancelTimer) -> None:
        async with self._slots:
            await self._timers.cancel(one.key, one.name)

    async def _all(self, work: Sequence[object]) -> None:
        results = await asyncio.gather(*work, return_exceptions=True)  # type: ignore[call-overload]
        for result in results:
            if isinstance(result, BaseException):
                raise result
