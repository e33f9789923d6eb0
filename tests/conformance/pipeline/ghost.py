"""The worker of rows that are given as running, and of bookkeeping calls: it holds commands and runs nothing."""

import asyncio
from typing import TYPE_CHECKING, ClassVar

import msgspec

from waybook.engine.inputs import Continue, Delivered, Released
from waybook.engine.inputs import World as Read
from waybook.engine.ports import CTL_ANY, Delivery
from waybook.engine.recorder import Holder
from waybook.events.command import Command
from waybook.events.subjects import RunKey, command_subject
from waybook.services.walker.lifecycle import Committed, Lifecycle

if TYPE_CHECKING:
    from tests.conformance.pipeline.world import World

FOREVER_MS = 10**9


class Ghost:
    """Takes the command under which a given row runs, keeps its lease, and gives it back gracefully."""

    NAME: ClassVar[str] = "ghost"

    def __init__(self, world: "World") -> None:
        self._world = world
        self._held: dict[RunKey, tuple[Command, Delivery]] = {}

    def lifecycle(self) -> Lifecycle:
        """The product's lifecycle module, as a process of its own uses it."""
        return Lifecycle(self._world.backend.ports.state, self._world.codec, self._world.clock, self.NAME)

    async def hold(self, key: RunKey) -> Holder:
        """A command of the run that is delivered to nobody else for now."""
        if key not in self._held:
            self._held[key] = await self._take(key)
        command, delivery = self._held[key]
        return Holder(command.id, delivery.claim)

    async def _take(self, key: RunKey) -> tuple[Command, Delivery]:
        world = self._world
        name = world.client.next_name("running")
        command = Command(id=name, verb="continue", issued_at=world.clock.now(), actor="relay")
        subject = command_subject(key, "continue", issuer="relay")
        queue = world.backend.ports.commands
        taken = world.traffic.intercept(name, self.NAME)
        await world.traffic.publish(queue, subject, msgspec.json.encode(command), name, None)
        if not any(w.works for w in world.workers):
            for pulled in await queue.pull(CTL_ANY.name, 1, 5.0):
                world.traffic.intercepted(pulled)
        delivery = await asyncio.wait_for(taken, 10.0)
        world.backend.ports.heartbeat.hold(delivery.ack_subject, world.clock.now() + FOREVER_MS)
        return command, delivery

    async def begin(self, key: RunKey) -> Committed:
        """Begins what is due in the run, by a commit of the lifecycle module under a command that the ghost holds."""
        await self.hold(key)
        command, delivery = self._held[key]
        lifecycle = self.lifecycle()
        run = await lifecycle.load(key)
        delivered = Delivered(command, Continue(), delivery.claim, self._world.clock.now())
        committed = await lifecycle.commit(self._world.definition.engine, key, run, [delivered], Read())
        return committed

    async def release(self) -> None:
        """Stops as a worker does that is asked to: releases what it runs by a commit, then gives the commands back."""
        world = self._world
        lifecycle = self.lifecycle()
        for key, (_, delivery) in list(self._held.items()):
            del self._held[key]
            run = await lifecycle.load(key)
            opened = run.open_actions() if run is not None else []
            mine = tuple(a.id for a in opened if a.claim == delivery.claim and a.status == "running")
            if mine:
                await lifecycle.commit(world.definition.engine, key, run, [Released(mine)], Read())
            world.backend.ports.heartbeat.drop(delivery.ack_subject)
            await delivery.nak()
            world.traffic.given_back(delivery.claim, 0.0)
