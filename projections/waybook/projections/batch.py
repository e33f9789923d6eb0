"""A batch of commits to the changes of rows: pure, and the same rows for any way of cutting the log into batches."""

from collections.abc import Iterable, Mapping

from waybook.events import engine as e
from waybook.events.subjects import RunKey
from waybook.projections import agent_actions, approvals, hold, inbound_messages, operations, timers
from waybook.projections.changes import Handler, RunChange
from waybook.projections.decoding import AS_READ
from waybook.projections.errors import ProjectionStopped
from waybook.projections.progress import Entry, Progress

HANDLERS: dict[type, tuple[Handler, ...]] = {
    event: tuple(
        handlers[event]
        for handlers in (
            agent_actions.HANDLERS,
            hold.HANDLERS,
            approvals.HANDLERS,
            operations.HANDLERS,
            inbound_messages.HANDLERS,
            timers.HANDLERS,
        )
        if event in handlers
    )
    for event in e.EngineEvent.__args__
}
HANDLERS |= {read: HANDLERS[event] for event, read in AS_READ.items()}


def is_projected(key: RunKey) -> bool:
    """Whether a run has rows: state wider than one run (agents `@...`) has none."""
    return not key.agent.startswith("@")


def runs_of(entries: Iterable[Entry]) -> list[RunKey]:
    """The runs of a batch, whose progress `fold_batch` needs as far as there is any."""
    return list(dict.fromkeys(entry.key for entry in entries))


def fold_batch(entries: Iterable[Entry], known: Mapping[RunKey, Progress]) -> list[RunChange]:
    """The changes of rows that `entries`, in the order of the stream, make.

    `known` holds the progress of the runs that have rows; it is changed in place. Commits already contained in it
    change nothing. Raises ProjectionStopped when a run's history has a hole.
    """
    changes: dict[RunKey, RunChange] = {}
    for entry in entries:
        change = changes.get(entry.key)
        if change is None:
            progress = known.get(entry.key)
            change = changes[entry.key] = RunChange(entry.key, progress if progress is not None else Progress())
        _apply(change, entry)
    return [c for c in changes.values() if c.sequence]


def _apply(change: RunChange, entry: Entry) -> None:
    progress, commit = change.progress, entry.commit
    if commit.version <= progress.version:
        return
    if commit.version != progress.version + 1:
        raise ProjectionStopped(
            f"run {entry.key}: version {commit.version} at sequence {entry.sequence} follows version "
            f"{progress.version} in the read model; run `waybook projections rebuild`"
        )
    change.commit = commit
    change.sequence = entry.sequence
    for index, event in enumerate(commit.events):
        change.index = index
        for handler in HANDLERS[type(event)]:
            handler(change, event)
    if progress.version == 0 and change.started is None:
        raise ProjectionStopped(f"run {entry.key}: its first commit, at sequence {entry.sequence}, starts nothing")
    progress.version = commit.version
    progress.sequence = entry.sequence
    progress.walk = commit.walk
    progress.updated_at = commit.at
