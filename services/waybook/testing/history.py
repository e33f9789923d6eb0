"""What a run's history may look like: checks for tests that break things, on commits as they are stored."""

from collections.abc import Sequence

import msgspec

from waybook.engine.definition import Table
from waybook.engine.ports import StateLog
from waybook.events.codec import Codec
from waybook.events.commit import Commit, event_name
from waybook.events.engine import (
    ActionAbandoned,
    ActionReleased,
    Claim,
    EngineEvent,
    LeaseRenewed,
    RunEnded,
    RunStarted,
    StepBegan,
    StepCompleted,
    StepFailed,
    Transitioned,
)
from waybook.events.subjects import RunKey, state_subject


async def read_history(log: StateLog, key: RunKey, codec: Codec | None = None) -> list[Commit]:
    """All commits of a run, oldest first. Raises PortUnavailable, and UndecodableCommit for foreign bytes."""
    codec = codec or Codec()
    return [codec.decode(r.payload, r.headers, r.subject) async for r in log.history(state_subject(key))]


def events_of(history: Sequence[Commit]) -> list[tuple[str, EngineEvent]]:
    """Every event with its name, in order."""
    return [(event_name(c.version, i), event) for c in history for i, event in enumerate(c.events)]


def completed(history: Sequence[Commit]) -> list[str]:
    """Executions with a StepCompleted, `"<walk>:<step>:<trigger>"`, as often as they have one."""
    began = {e.action: e for _, e in events_of(history) if isinstance(e, StepBegan)}
    return [_execution(began[e.action]) for _, e in events_of(history) if isinstance(e, StepCompleted)]


def illegalities(table: Table, history: Sequence[Commit], *, ended: bool = True) -> list[str]:
    """All that is wrong with a run's history, one sentence each; empty when it is legal.

    `ended`: nothing may be under way at its end, as when the run has ended or waits for a person.
    """
    return _Reader(table).read(history, ended=ended)


class _Open(msgspec.Struct):
    began: StepBegan
    claim: Claim
    released: bool = False


class _Reader:
    """Reads a history and notes what breaks a rule."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._wrong: list[str] = []
        self._state: str | None = None
        self._ended = False
        self._open: dict[str, _Open] = {}
        self._completed: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._claims: dict[str, Claim] = {}
        self._commands: set[str] = set()

    def read(self, history: Sequence[Commit], *, ended: bool) -> list[str]:
        for expected, commit in enumerate(history, 1):
            if commit.version != expected:
                self._wrong.append(f"version {commit.version} stands where {expected} belongs")
            for command in commit.commands:
                if command in self._commands:
                    self._wrong.append(f"command {command} was applied twice")
                self._commands.add(command)
        for name, event in events_of(history):
            self._event(name, event)
        if ended:
            self._wrong += [f"action {action} of {o.began.step} never ended" for action, o in self._open.items()]
        return self._wrong

    def _event(self, name: str, event: EngineEvent) -> None:
        if self._state is None and not isinstance(event, RunStarted):
            self._wrong.append(f"{name}: {type(event).__name__} comes before RunStarted")
        if isinstance(event, RunStarted):
            if self._state is not None:
                self._wrong.append(f"{name}: the run started twice")
            self._state = event.state
        elif isinstance(event, Transitioned):
            self._transition(name, event)
        elif isinstance(event, StepBegan):
            self._begin(name, event)
        elif isinstance(event, StepCompleted | StepFailed | ActionAbandoned | ActionReleased):
            self._end(name, event)
        elif isinstance(event, LeaseRenewed):
            self._renew(name, event)
        elif isinstance(event, RunEnded):
            self._ended = True

    def _transition(self, name: str, event: Transitioned) -> None:
        if event.from_state != self._state:
            self._wrong.append(f"{name}: moves from {event.from_state}, but the run is {self._state}")
        rows = [r for r in self._table.rows if r.name == event.row and r.next == event.to_state]
        if not any(r.state in (event.from_state, "*") for r in rows) or event.from_state in self._table.terminal:
            self._wrong.append(f"{name}: no row {event.row} leads from {event.from_state} to {event.to_state}")
        self._state = event.to_state

    def _begin(self, name: str, event: StepBegan) -> None:
        execution = _execution(event)
        if self._ended or self._state == "failed":
            self._wrong.append(f"{name}: {event.step} began while the run was {self._state}")
        if execution in self._completed:
            self._wrong.append(f"{name}: {execution} began again after its completion")
        before = next((a for a, o in self._open.items() if _execution(o.began) == execution), None)
        if before is not None and not self._open.pop(before).released:
            self._wrong.append(f"{name}: {execution} began while attempt {before} was under way")
        if event.attempt != self._attempts.get(execution, 0) + 1:
            self._wrong.append(
                f"{name}: attempt {event.attempt} of {execution} follows {self._attempts.get(execution, 0)}"
            )
        self._attempts[execution] = event.attempt
        self._claim(name, event.command, event.claim)
        self._open[event.action] = _Open(event, event.claim)

    def _end(self, name: str, event: StepCompleted | StepFailed | ActionAbandoned | ActionReleased) -> None:
        opened = self._open.get(event.action)
        if opened is None or (opened.released and not isinstance(event, ActionAbandoned)):
            self._wrong.append(f"{name}: {type(event).__name__} of {event.action}, which is not under way")
            return
        if isinstance(event, ActionReleased):
            opened.released = True
            return
        del self._open[event.action]
        if isinstance(event, StepCompleted):
            self._completed.add(_execution(opened.began))

    def _renew(self, name: str, event: LeaseRenewed) -> None:
        for action in event.actions:
            opened = self._open.get(action)
            if opened is None or opened.released:
                self._wrong.append(f"{name}: the lease of {action} was renewed, which is not under way")
            else:
                self._claim(name, opened.began.command, event.claim)
                opened.claim = event.claim

    def _claim(self, name: str, command: str, claim: Claim) -> None:
        if command in self._claims and claim < self._claims[command]:
            self._wrong.append(f"{name}: claim {claim} of {command} comes after {self._claims[command]}")
        self._claims[command] = max(claim, self._claims.get(command, claim))


def _execution(began: StepBegan) -> str:
    return f"{began.walk}:{began.step}:{began.trigger}"
