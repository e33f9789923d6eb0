"""What is known of a sender when a message of theirs comes in: whether they are blocked, and when it may begin."""

import msgspec

from waybook.engine.aggregates.keys import sender_key
from waybook.engine.aggregates.requests import Admit, Asked
from waybook.engine.aggregates.sender import Rate, sender_of
from waybook.engine.inputs import Start
from waybook.events.command import StartPayload
from waybook.events.subjects import RunKey
from waybook.services.walker.aggregates import Aggregates

BLOCKED = "sender_blocked"
"""The flag of a run whose sender was blocked when it came in; the agent's table says what becomes of it."""


class Senders:
    """Reads `@sender` by the leader's word. `rate`: how fast one sender's messages may begin on live channels."""

    def __init__(self, aggregates: Aggregates, rate: Rate | None) -> None:
        self._aggregates = aggregates
        self._rate = rate

    async def meet(self, key: RunKey, body: Start, start: StartPayload) -> Start:
        """The start with what its sender brings upon it. A repeated delivery finds the same. Raises PortError."""
        assert start.sender is not None
        sender = sender_key(key.tenant, start.sender)
        rate = self._rate if start.live else None
        if rate is None:
            known = sender_of(await self._aggregates.look(sender))
        else:
            asked = Asked(Admit(key.run, rate.per_minute, rate.burst))
            known = sender_of((await self._aggregates.ask(sender, asked)).run)
        if known.block.on:
            return msgspec.structs.replace(body, flags=(*body.flags, BLOCKED))
        begins = known.arrivals.get(key.run)
        return msgspec.structs.replace(body, begins=begins) if begins is not None else body
