"""One delivery of a command."""

from waybook.adapters.nats.bulk_ack import ACK, BulkAcks
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.frames import parse_headers
from waybook.engine.ports import PortUnavailable
from waybook.events.engine import Claim


class NatsDelivery:
    """The port Delivery.

    Its verbs are sent without an answer and never raise for a server that is away: a lost ack means that the
    command comes again and is found applied, and nothing more could be done about it here. `bulk` acknowledges it
    together with others.
    """

    __slots__ = (
        "_block", "_bulk", "_connection", "_headers", "ack_subject", "claim", "payload", "received_at", "subject"
    )  # fmt: skip

    def __init__(
        self, connection: Connection, subject: str, ack_subject: str, claim: Claim, received_at: int, payload: bytes,
        block: bytes | None, bulk: BulkAcks | None = None,
    ) -> None:  # fmt: skip
        self._connection = connection
        self._bulk = bulk
        self._block = block
        self._headers: dict[str, str] | None = None
        self.subject = subject
        self.payload = payload
        self.ack_subject = ack_subject
        self.claim = claim
        self.received_at = received_at

    @property
    def headers(self) -> dict[str, str]:
        """The command's headers."""
        if self._headers is None:
            self._headers = parse_headers(self._block)
        return self._headers

    async def ack(self) -> None:
        """The command is done; COMMANDS drops it."""
        if self._bulk is None:
            self._say(ACK)
        else:
            self._bulk.ack(self.claim.sequence, self.ack_subject)

    async def nak(self, delay_s: float = 0.0) -> None:
        """Gives the command back; it is delivered again after `delay_s`."""
        self._say(b'-NAK {"delay": %d}' % int(delay_s * 1e9) if delay_s > 0 else b"-NAK")

    async def term(self, reason: str) -> None:
        """Drops the command for good; `reason` goes into the server's advisory."""
        if self._bulk is not None:
            self._bulk.dropped(self.claim.sequence)
        self._say(b"+TERM " + reason.replace("\r", " ").replace("\n", " ").encode())

    async def in_progress(self) -> None:
        """Renews the lease for another ack_wait."""
        self._say(b"+WPI")

    def _say(self, word: bytes) -> None:
        try:
            self._connection.publish(self.ack_subject, word)
        except PortUnavailable:
            return  # harmless by design, see the class


def ack_fields(ack_subject: bytes) -> tuple[int, int, int, int]:
    """(stream sequence, delivery count, consumer sequence, stored at in ns) of an ack subject of either version.

    `$JS.ACK.<stream>.<consumer>.<delivered>.<sseq>.<cseq>.<time>.<pending>`, in version 2 with domain and account
    hash before the stream, and possibly more tokens behind.
    """
    tokens = ack_subject.split(b".")
    first = 4 if len(tokens) == 9 else 6
    delivered, sequence, consumer_sequence, stored = (int(t) for t in tokens[first : first + 4])
    return sequence, delivered, consumer_sequence, stored
