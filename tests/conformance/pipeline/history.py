"""A run as it is read for comparing: its commits from STATE, and the run that the product's fold makes of them."""

from collections.abc import Iterator
from typing import Any

import msgspec
from tests.conformance.pipeline.names import PROCESSED, RESET_STATE, START_ROW, STEPS, to_case

from waybook.engine.fold import Stored
from waybook.engine.run import Run, execution_key
from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey


class Entry(msgspec.Struct, frozen=True):
    """One event of a history; `version` is its commit's."""

    version: int
    index: int
    sequence: int
    at: int
    event: e.EngineEvent

    @property
    def name(self) -> str:
        return f"{self.version}.{self.index}"


class History(msgspec.Struct, frozen=True):
    """A run's commits in order and the run folded from them; None when nothing is stored."""

    key: RunKey
    commits: tuple[Stored, ...]
    run: Run | None

    def entries(self, since: int = 0) -> Iterator[Entry]:
        """The events of the commits above version `since`."""
        for commit, sequence, _ in self.commits:
            if commit.version > since:
                yield from _entries(commit, sequence)

    def events(self, kind: type, since: int = 0) -> list[Any]:
        """The events of one type above version `since`."""
        return [entry.event for entry in self.entries(since) if type(entry.event) is kind]

    @property
    def version(self) -> int:
        return self.commits[-1][0].version if self.commits else 0


def _entries(commit: Commit, sequence: int) -> Iterator[Entry]:
    for index, event in enumerate(commit.events):
        yield Entry(commit.version, index, sequence, commit.at, event)


def states_visited(history: History, since: int) -> list[str]:
    """States in order from the one at version `since` (the arranged one), consecutive repeats removed."""
    visited: list[str] = []
    before = ""
    for entry in history.entries():
        if type(entry.event) is e.RunStarted:
            state = entry.event.state
        elif type(entry.event) is e.Transitioned:
            state = entry.event.to_state
        else:
            continue
        if entry.version <= since:
            before = state
        else:
            visited.append(state)
    if before:
        visited.insert(0, before)
    return [s for i, s in enumerate(visited) if i == 0 or visited[i - 1] != s]


def transitions(history: History, since: int = 0) -> list[tuple[str, str]]:
    return [(t.from_state, t.to_state) for t in history.events(e.Transitioned, since)]


def pipeline_starts(history: History, since: int) -> int:
    """Once for each start after intake and for each transition to received."""
    starts, before_state = 0, ""
    for entry in history.entries():
        event = entry.event
        if type(event) is not e.Transitioned:
            continue
        first = event.row == START_ROW and before_state != RESET_STATE
        if entry.version > since and (event.to_state == RESET_STATE or first):
            starts += 1
        before_state = event.to_state
    return starts


def enqueued(history: History, since: int) -> list[str]:
    """Kinds of the steps that were named as next, or begun, by commits above `since`: each execution once a cause.

    The next attempt after a lost worker is no new request, the one of a retry is.
    """
    named: set[str] = set()
    found: list[str] = []
    for commit, _, _ in history.commits:
        again = any(type(event) is e.StepReused or _is_reset(event) for event in commit.events)
        for event in commit.events:
            if isinstance(event, (e.StepBegan, e.StepOffered)):
                key = execution_key(event.walk, event.step, event.trigger)
                arranged_trigger = int(event.trigger.partition(".")[0]) <= since
                if commit.version > since and (again or (key not in named and not arranged_trigger)):
                    found.append(event.step)
                named.add(key)
    return found


def _is_reset(event: e.EngineEvent) -> bool:
    return type(event) is e.Transitioned and event.to_state == RESET_STATE


def begun(history: History, since: int) -> list[tuple[int, str]]:
    """Begun steps above `since`, as (sequence in the stream, kind)."""
    return [(entry.sequence, entry.event.step) for entry in history.entries(since) if type(entry.event) is e.StepBegan]


def completed(history: History, since: int) -> list[str]:
    """Kinds of the attempts that ended with a stored result above `since`."""
    steps = {event.action: event.step for event in history.events(e.StepBegan)}
    return [steps[event.action] for event in history.events(e.StepCompleted, since)]


def message_fields(history: History, now: int = 0) -> dict[str, Any]:
    """The fields of a message as cases name them, derived ones included; times to come count from `now`."""
    run = history.run
    if run is None:
        return {}
    fields: dict[str, Any] = to_case(run.fields)
    fields["walk"] = run.walk
    fields["pendingAutoSend"] = next(
        ({"in_seconds": (t.due - now) / 1000} for t in run.timers.values() if t.timer_class == "send"), None
    )
    fields["automated"] = True if fields.get("automated") else None
    fields["messageIdReused"] = True if "message_id_reused" in run.flags else None
    if "processedAt" not in fields:
        entered = [x.at for x in history.entries() if type(x.event) is e.Transitioned and x.event.to_state in PROCESSED]
        fields["processedAt"] = entered[-1] if entered and run.state in PROCESSED else None
    return fields


def bindings_kept(history: History) -> bool:
    """Every attempt at an execution had the same inputs, and no execution published its results twice."""
    bound: dict[str, e.Bindings] = {}
    ended: dict[str, int] = {}
    executions: dict[str, str] = {}
    for event in (entry.event for entry in history.entries()):
        if type(event) is e.StepBegan:
            key = execution_key(event.walk, event.step, event.trigger)
            executions[event.action] = key
            if bound.setdefault(key, event.bindings) != event.bindings:
                return False
        elif type(event) is e.StepCompleted:
            ended[executions[event.action]] = ended.get(executions[event.action], 0) + 1
    return all(times == 1 for times in ended.values())


def in_order(kinds: list[tuple[int, str]]) -> list[str]:
    """Kinds of the five steps, by their place in the stream."""
    return [kind for _, kind in sorted(kinds, key=lambda pair: pair[0]) if kind in STEPS]
