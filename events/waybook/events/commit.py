"""The commit: one JetStream message holding the ordered events of one decision about one run."""

import msgspec

from waybook.events.engine import EngineEvent


class Position(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Where a commit stands: the stream's name and the sequence in it. There is no order across streams."""

    stream: str
    sequence: int


class Commit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Events of one run that are stored together or not at all.

    `version` counts the run's commits from 1. `walk` is the run's walk at the end of the commit. `at` is in
    milliseconds since the epoch, UTC. `commands` are the ids of the commands that this commit applies.
    `definition` is the content hash of the agent's definition that decided. An event is named by
    (run, version, index in `events` from 0). `schemas` belongs to the codec: the schema versions above 1 of the
    engine events in it, so that the bytes say by themselves how to read them; None in memory.
    """

    version: int
    walk: int
    at: int
    actor: str
    definition: str
    events: tuple[EngineEvent, ...]
    commands: tuple[str, ...] = ()
    schemas: dict[str, int] | None = None


def event_name(version: int, index: int) -> str:
    """The name of an event within its run: `"<version>.<index>"`."""
    return f"{version}.{index}"


def parse_event_name(name: str) -> tuple[int, int]:
    """The (version, index) of an event's name; ValueError when it is not one."""
    version, _, index = name.partition(".")
    return int(version), int(index)
