"""What of a run is still open: the little that its next commit needs, kept beside its row.

The read models are folded from commits and this alone, so that a batch is applied without reading its rows.
"""

from typing import NamedTuple

import msgspec

from waybook.events.commit import Commit
from waybook.events.subjects import RunKey


class Entry(NamedTuple):
    """A commit as it stands in the stream."""

    sequence: int
    key: RunKey
    commit: Commit


class OpenAction(msgspec.Struct, array_like=True):
    """An action that began and has not ended; `released`: given back, so that it is due again."""

    step: str
    trigger: str
    walk: int
    command: str
    released: bool = False

    @property
    def execution(self) -> str:
        return execution(self.walk, self.step, self.trigger)


class Retry(msgspec.Struct, array_like=True):
    """The next attempt of an execution, waiting for `timer`. `due` in ms, UTC."""

    step: str
    trigger: str
    attempt: int
    due: int
    timer: str


class Progress(msgspec.Struct, array_like=True):
    """A run's bookkeeping. Times in ms, UTC.

    `open` holds actions begun and not ended, by id; `released` maps an execution to the one that was given back.
    `pending` maps an execution that is due to the id of its row. `failures` counts by step. `exhausted` are
    the executions of the current walk that only a person begins again, with the command that lost their worker, if
    that was it; `convicted` such commands with the reason. `retries` are by execution; `timers` by id: class and due time;
    `approvals` undecided ones with their end; `unknown` the operations whose outcome is unknown,
    `disputed` those with two; `asks` maps timers to the unknown operation that they have asked for.
    """

    version: int = 0
    sequence: int = 0
    walk: int = 1
    status: str = ""
    updated_at: int = 0
    processed_at: int | None = None
    ended_at: int | None = None
    outcome: str | None = None
    error_message: str | None = None
    open: dict[str, OpenAction] = {}
    released: dict[str, str] = {}
    pending: dict[str, str] = {}
    failures: dict[str, int] = {}
    exhausted: dict[str, str] = {}
    convicted: dict[str, str] = {}
    retries: dict[str, Retry] = {}
    timers: dict[str, tuple[str, int]] = {}
    approvals: dict[str, int | None] = {}
    unknown: dict[str, str] = {}
    disputed: dict[str, str] = {}
    asks: dict[str, str] = {}
    taken_over: bool = False


def execution(walk: int, step: str, trigger: str) -> str:
    """The identity of an execution within its run."""
    return f"{walk}:{step}:{trigger}"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Progress).decode


def to_bytes(progress: Progress) -> bytes:
    """The stored form, the same bytes for the same history."""
    return _encode(progress)


def from_bytes(data: bytes) -> Progress:
    """The progress stored by `to_bytes`; msgspec.ValidationError when another version of this code wrote it."""
    return _decode(data)
