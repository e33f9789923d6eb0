"""A run's whole history, one entry an event."""

from typing import Any

import msgspec

from waybook.engine.fold import Stored, fold_all
from waybook.engine.ports import StateLog
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.errors import TerminalError
from waybook.events.headers import COMMIT
from waybook.events.subjects import RunKey, state_subject


class UnknownRun(TerminalError):
    """There is no such run."""


class Entry(msgspec.Struct, frozen=True):
    """One event as `waybook show` prints it. `seq` is the commit's sequence in STATE, `at` in ms, UTC."""

    seq: int
    version: int
    index: int
    type: str
    at: int
    actor: str
    data: dict[str, Any]


async def read_history(log: StateLog, codec: Codec, key: RunKey) -> tuple[Run, list[Entry]]:
    """The folded run and its events in order. Raises UnknownRun, PortError, HistoryHole."""
    stored: list[Stored] = []
    entries: list[Entry] = []
    async for record in log.history(state_subject(key)):
        commit = codec.decode(record.payload, record.headers, record.subject)
        stored.append((commit, record.sequence, record.headers.get(COMMIT, "")))
        for index, event in enumerate(commit.events):
            data = msgspec.json.decode(msgspec.json.encode(event), type=dict[str, Any])
            kind = data.pop("type")
            entries.append(Entry(record.sequence, commit.version, index, kind, commit.at, commit.actor, data))
    run = fold_all(None, stored, key=key)
    if run is None:
        raise UnknownRun(f"there is no run {key.run} of agent {key.agent}; `waybook messages` lists the runs")
    return run, entries
