"""What waits for a run: an input of a decision, with the delivery that brought it."""

import asyncio

import msgspec

from waybook.engine.inputs import Completed, Delivered, Input, Outcome, Start
from waybook.engine.intents import Intend
from waybook.engine.ports import Delivery
from waybook.engine.run import Run
from waybook.events.command import StartPayload

EVENTS_BYTES = 2048


class Told(msgspec.Struct, frozen=True):
    """What was decided on an input, and the run as it is stored."""

    outcome: Outcome
    run: Run | None


class Item(msgspec.Struct, frozen=True):
    """An input waiting for a run, with the delivery that brought it, or with whoever waits to hear what came of it."""

    input: Input
    delivery: Delivery | None = None
    start: StartPayload | None = None
    heard: asyncio.Future[Told] | None = None

    @property
    def command(self) -> str:
        """The id of the command that was delivered."""
        assert isinstance(self.input, Delivered)
        return self.input.command.id

    @property
    def is_start(self) -> bool:
        return isinstance(self.input, Delivered) and isinstance(self.input.body, Start)

    @property
    def size(self) -> int:
        """Bytes that it adds to a commit, roughly: its payloads and the engine's own events."""
        if isinstance(self.input, Completed):
            return EVENTS_BYTES + sum(len(bytes(o.payload)) for o in self.input.outputs)
        if isinstance(self.input, Delivered) and isinstance(self.input.body, Start):
            return EVENTS_BYTES + len(bytes(self.input.body.output.payload))
        if isinstance(self.input, Intend):
            return EVENTS_BYTES + len(msgspec.json.encode(self.input.params))
        return EVENTS_BYTES

    def for_log(self) -> dict[str, object]:
        """Fields of a log record about a delivery."""
        return {"command": self.command, "subject": self.delivery.subject if self.delivery is not None else None}
