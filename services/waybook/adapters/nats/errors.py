"""What the server's answers mean, and the port errors they become. No nats-py exception leaves the adapter."""

from typing import Literal, TypeAlias

import msgspec

from waybook.engine.ports import OutcomeUnknown, PortError, PortMisconfigured, PortUnavailable, StreamFull

Failure: TypeAlias = PortError | PortMisconfigured


class ApiError(msgspec.Struct, frozen=True):
    """The `error` object of a JetStream answer."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    def __str__(self) -> str:
        return f"{self.description} ({self.err_code or self.code})"


class PubAck(msgspec.Struct, frozen=True):
    """JetStream's answer to a publish; `seq` is that of the last message of a batch."""

    seq: int = 0
    stream: str = ""
    duplicate: bool = False
    count: int = 0
    error: ApiError | None = None


# Codes of github.com/nats-io/nats-server, server/errors.json
CONFLICT = frozenset({10071, 10164})
SEQUENCE_TAKEN = 10071  # the guard is stale for sure; 10164 also says "another append is in flight"
UNKNOWN = frozenset({10201, 10176})  # duplicate id in a batch, incomplete batch
BATCH_BUSY = frozenset({10210})  # too many open batches
BATCH_TOO_LARGE = frozenset({10199})
BATCH_OFF = frozenset({10174})  # the stream has no allow_atomic
NO_MESSAGE = frozenset({10037})
NO_STREAM = frozenset({10059})
NO_CONSUMER = frozenset({10014})
FULL = frozenset({10077, 10047, 10028, 10002})
FULL_TEXT = ("maximum messages", "maximum bytes", "insufficient", "no space left", "resource limits")
CONSUMER_NOT_MADE = 10012  # for reasons of the server's disk, such as a consumer of that name being deleted just now
AWAY = frozenset({CONSUMER_NOT_MADE, 10005, 10007, 10008, 10009, 10023, 10074, 10106, 10112, 10117})

Meaning: TypeAlias = Literal["conflict", "unknown", "busy", "off", "full", "away", "misconfigured"]


def meaning(error: ApiError) -> Meaning:
    """What an error that answered a publish means for the one who sent it."""
    code = error.err_code
    if code in CONFLICT:
        return "conflict"
    if code in UNKNOWN:
        return "unknown"
    if code in BATCH_BUSY or code in BATCH_TOO_LARGE:
        return "busy"
    if code in BATCH_OFF:
        return "off"
    if code in FULL:
        # 10077 is the store's word for whatever went wrong; only a limit is a full stream.
        return "full" if code != 10077 or any(t in error.description for t in FULL_TEXT) else "unknown"
    if code in AWAY or error.code == 503:
        return "away"
    return "misconfigured"


def port_error(error: ApiError, what: str) -> Failure:
    """The port error for an answer that refuses `what` (a phrase like "append to STATE_g1_00")."""
    match meaning(error):
        case "full":
            return StreamFull(f"{what}: the stream is full, nothing was stored: {error}")
        case "away" | "busy":
            return PortUnavailable(f"{what}: {error}")
        case "unknown":
            return OutcomeUnknown(f"{what}: {error}")
        case _:
            return PortMisconfigured(f"{what}: the server refuses: {error}")
