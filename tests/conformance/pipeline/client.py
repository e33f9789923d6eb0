"""Who gives commands in a case: people and intake at the gateway, the relay; and who waits for the answers."""

import itertools
from typing import TYPE_CHECKING, Any

import msgspec

from waybook.events.command import Answer, Command
from waybook.events.headers import REPLY
from waybook.events.subjects import Issuer, RunKey, command_subject

if TYPE_CHECKING:
    from tests.conformance.pipeline.world import World

PEOPLES_TIME_MS = 60_000
"""How long a person's command is valid (DESIGN 3)."""


class Asked:
    """A command that was given; its answer once there is one."""

    def __init__(self, world: "World", command: str, reply: str) -> None:
        self._world = world
        self.command = command
        self._reply = reply

    @property
    def answer(self) -> Answer | None:
        raw = self._world.traffic.answers.get(self._reply)
        return msgspec.json.decode(raw, type=Answer) if raw is not None else None


class Client:
    """Publishes commands with ids of their own, or with the id that the case gives."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._numbers = itertools.count(1)
        self._asked: dict[str, Asked] = {}

    def next_name(self, verb: str) -> str:
        """A command id that was not used before."""
        return f"{verb}-{next(self._numbers)}"

    async def give(
        self,
        key: RunKey,
        verb: str,
        payload: Any = None,
        *,
        issuer: Issuer = "gw",
        actor: str = "case",
        command: str | None = None,
        person: bool = False,
    ) -> Asked:
        """Stores a command. The same `command` id again is the same command: its first answer stands."""
        world = self._world
        name = command or self.next_name(verb)
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = Asked(world, name, f"_INBOX.case.{name}")
        now = world.clock.now()
        body = Command(
            id=name,
            verb=verb,
            issued_at=now,
            actor=actor,
            payload=msgspec.Raw(msgspec.json.encode(payload)),
            expires_at=now + PEOPLES_TIME_MS if person else None,
        )
        subject = command_subject(key, verb, issuer=issuer)
        headers = {REPLY: f"_INBOX.case.{name}"}
        queue = world.backend.ports.commands
        await world.traffic.publish(queue, subject, msgspec.json.encode(body), name, headers)
        return asked
