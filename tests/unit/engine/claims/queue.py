"""The work queue COMMANDS, as JetStream behaves: leases lapse, and acks and naks of old deliveries are honoured (P1 to P3)."""

import msgspec

from waybook.engine.inputs import Body
from waybook.events.command import Command
from waybook.events.engine import Claim


class Handle:
    """One delivery in a worker's hands.

    `broken`: its lease lapsed, and its worker can tell by its own clock. What others do to the message with old
    handles does not show here: the holder goes on believing in its lease.
    """

    def __init__(self, command: Command, body: Body, claim: Claim) -> None:
        self.command = command
        self.body = body
        self.claim = claim
        self.broken = False


class Message:
    """A command in the queue, in a lane or in none. `newest` is its latest delivery; `waiting` while it may be delivered."""

    def __init__(self, command: Command, body: Body, lane: str | None) -> None:
        self.command = command
        self.body = body
        self.lane = lane
        self.deliveries = 0
        self.waiting = True
        self.newest: Handle | None = None


class Queue:
    """Messages by sequence. `created` stands for the creation time of the consumer."""

    def __init__(self) -> None:
        self.messages: dict[int, Message] = {}
        self.created = 1
        self._last = 0

    def publish(self, command: Command, body: Body, lane: str | None = None) -> None:
        self._last += 1
        self.messages[self._last] = Message(command, body, lane)

    def waiting(self) -> list[int]:
        return [s for s, m in self.messages.items() if m.waiting]

    def deliver(self, sequence: int) -> Handle:
        message = self.messages[sequence]
        message.deliveries += 1
        message.waiting = False
        claim = Claim(sequence, self.created, message.deliveries)
        message.newest = Handle(message.command, message.body, claim)
        return message.newest

    def ack(self, handle: Handle) -> None:
        """Removes the message, whichever delivery says so (P1)."""
        self.messages.pop(handle.claim.sequence, None)

    def nak(self, handle: Handle) -> None:
        """Makes the message deliverable at once, whichever delivery says so (P2)."""
        message = self.messages.get(handle.claim.sequence)
        if message is not None:
            message.waiting = True

    def lapse(self, sequence: int) -> None:
        """The lease ran out: heartbeats of the newest delivery did not arrive in time."""
        message = self.messages[sequence]
        message.waiting = True
        if message.newest is not None:
            message.newest.broken = True

    def recreate(self) -> None:
        """A new consumer: all messages are deliverable, and their delivery counts begin again (P5)."""
        self.created += 1
        for message in self.messages.values():
            message.deliveries = 0
            message.waiting = True
            if message.newest is not None:
                message.newest.broken = True

    def purge(self) -> None:
        """An operator's error: all commands are gone, and the leases with them."""
        for message in self.messages.values():
            if message.newest is not None:
                message.newest.broken = True
        self.messages.clear()

    def holds(self, sequence: int) -> bool:
        return sequence in self.messages

    def snapshot(self) -> bytes:
        """The queue's state, for a look at a failing interleaving."""
        return msgspec.json.encode({s: (m.command.id, m.deliveries, m.waiting) for s, m in self.messages.items()})
