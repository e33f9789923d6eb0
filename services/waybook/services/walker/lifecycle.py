"""Decide plus append: the one module that writes STATE (DESIGN 2, invariant 3)."""

import time
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from waybook.engine.aggregates.decide import decide_aggregate
from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.requests import Asked
from waybook.engine.aggregates.requests import Record as Recorded
from waybook.engine.decide import commit_of, decide
from waybook.engine.definition import Definition
from waybook.engine.errors import HistoryHole
from waybook.engine.fold import Stored, fold_all
from waybook.engine.hooks import ConflictMet, Hook, ignore
from waybook.engine.inputs import Decision, Input, World
from waybook.engine.ports import AppendConflict, Clock, Draft, Record, StateLog
from waybook.engine.run import Run
from waybook.engine.snapshot import EVERY
from waybook.events.codec import Codec, commit_headers, commit_id
from waybook.events.commit import Commit
from waybook.events.engine import ThreadContextChanged, ThreadJoined
from waybook.events.headers import CAUSATION, COMMIT, DEFINITION, PREVIOUS
from waybook.events.large_fields import needs_split
from waybook.events.subjects import RunKey, state_subject
from waybook.services.walker.snapshots import LongRuns
from waybook.services.walker.telling import tell_stored


class Committed(msgspec.Struct, frozen=True):
    """A decision with the run as stored. `appended`: it wrote a commit, so the guard has confirmed it."""

    decision: Decision
    run: Run | None
    appended: bool


class Lifecycle:
    """Loads runs, decides on them, and appends what was decided; `hook` is told of every append.

    `long_runs` keeps snapshots; not where personal fields are sealed, which a snapshot would hold in the clear.
    """

    def __init__(
        self,
        log: StateLog,
        codec: Codec,
        clock: Clock,
        actor: str,
        hook: Hook = ignore,
        long_runs: LongRuns | None = None,
    ) -> None:
        self._long_runs = long_runs if not codec.seals else None
        self._log = log
        self._codec = codec
        self._clock = clock
        self._actor = actor
        self._hook = hook

    async def load(self, key: RunKey, run: Run | None = None) -> Run | None:
        """The run folded from its history, going on from `run`. Raises HistoryHole, PortError."""
        history: list[Stored] = []
        previous = run.commit if run is not None else ""
        async for record in self._log.history(state_subject(key), run.sequence if run is not None else 0):
            history.append(self._stored(key, record, previous))
            previous = history[-1][2]
            if len(history) == EVERY and run is None and self._long_runs is not None:
                kept = await self._long_runs.find(key)
                going_on = await self._rest(key, kept) if kept is not None else None
                if going_on is not None:
                    return going_on
        return fold_all(run, history, key=key)

    async def _rest(self, key: RunKey, kept: Run) -> Run | None:
        """A kept run with what came after it; None when the log does not have its last commit where it says."""
        history: list[Stored] = []
        previous = ""
        async for record in self._log.history(state_subject(key), kept.sequence - 1):
            if previous:
                history.append(self._stored(key, record, previous))
            elif record.sequence != kept.sequence or record.headers.get(COMMIT) != kept.commit:
                return None
            previous = record.headers.get(COMMIT, "")
        return fold_all(kept, history, key=key) if previous else None

    def _stored(self, key: RunKey, record: Record, previous: str) -> Stored:
        named = record.headers.get(PREVIOUS, "")
        if named != previous:
            raise HistoryHole(f"run {key}: the commit at {record.sequence} follows {named!r}, not {previous!r}")
        return (
            self._codec.decode(record.payload, record.headers, record.subject),
            record.sequence,
            record.headers.get(COMMIT, ""),
        )

    async def confirmed(self, key: RunKey, run: Run | None) -> bool:
        """Whether `run` is the latest by the leader's word; decisions that append nothing need it (R5.2)."""
        tail = await self._log.tail(state_subject(key))
        return (tail.sequence if tail is not None else 0) == (run.sequence if run is not None else 0)

    async def definition_of(self, key: RunKey) -> str | None:
        """The hash of the definition that decided last on a run, by the leader's word; None when there is no run."""
        tail = await self._log.tail(state_subject(key))
        return tail.headers.get(DEFINITION) if tail is not None else None

    async def mentions(self, key: RunKey, command: str) -> bool:
        """Whether a commit of the run names this command; nothing is decoded or folded."""
        name = msgspec.json.encode(command)
        async for record in self._log.history(state_subject(key)):
            if record.headers.get(CAUSATION) == command or name in record.payload:
                return True
        return False

    def decide(
        self, definition: Definition, key: RunKey, run: Run | None, inputs: Sequence[Input], world: World
    ) -> Decision:
        """What `inputs` make of the run now; nothing is stored."""
        return decide(definition, key, run, inputs, self._clock.now(), world)

    def store(
        self,
        definition: Definition,
        key: RunKey,
        run: Run | None,
        decision: Decision,
        *,
        tries: int | None = None,
        causation: str | None = None,
    ) -> Coroutine[Any, Any, Committed]:
        """Appends a decision made on `run`. Raises AppendConflict when that was not the latest; nothing is stored then."""
        if not decision.events or decision.run is None:
            return _nothing(decision, run)
        commit = commit_of(decision, definition, self._actor)
        return self._append(key, run, decision, decision.run, commit, tries=tries, causation=causation)

    async def commit(
        self, definition: Definition, key: RunKey, run: Run | None, inputs: Sequence[Input], world: World
    ) -> Committed:
        """`decide`, then `store`."""
        return await self.store(definition, key, run, self.decide(definition, key, run, inputs, world))

    async def _append(
        self,
        key: RunKey,
        run: Run | None,
        decision: Decision,
        after: Run,
        commit: Commit,
        *,
        tries: int | None,
        causation: str | None,
    ) -> Committed:
        subject = state_subject(key)
        expected, previous = (run.sequence, run.commit) if run is not None else (0, None)
        payload = self._codec.encode(commit, subject)
        if needs_split(payload):
            payload = await self._log.fitting(subject, payload)
        identity = commit_id(subject, expected, payload)
        asked_by = after.parent
        parent = f"{asked_by.agent}/{asked_by.run}/{asked_by.request}" if asked_by is not None else None
        headers = commit_headers(commit, commit_id=identity, previous=previous, causation=causation, parent=parent)
        began = time.perf_counter()
        try:
            after.sequence = await self._log.append(Draft(subject, expected, payload, headers, identity), tries=tries)
        except AppendConflict:
            self._hook(ConflictMet(key.agent))
            raise
        after.commit = identity
        if self._hook is not ignore:
            tell_stored(self._hook, commit, after, len(payload), time.perf_counter() - began)
        if self._long_runs is not None:
            self._long_runs.after(after)
        return Committed(decision, after, True)

    async def record(self, key: RunKey, fact: ThreadJoined | ThreadContextChanged) -> Run:
        """Adds a fact to a system aggregate unless it is there already; returns the aggregate.

        The first try expects an empty subject, since most threads are new.
        """
        run: Run | None = None
        while True:
            try:
                committed = await self.change(key, run, (Asked(Recorded(fact)),))
            except AppendConflict:
                run = await self.load(key, run)
                continue
            assert committed.run is not None
            return committed.run

    async def change(
        self, key: RunKey, run: Run | None, asked: Sequence[Asked], grants: Grants | None = None
    ) -> Committed:
        """Decides on a system aggregate as it was read, and appends. Raises AppendConflict when `run` is not the latest."""
        decision = decide_aggregate(key, run, asked, self._clock.now(), grants)
        if not decision.events or decision.run is None:
            return Committed(decision, run, False)
        commit = Commit(
            version=decision.run.version,
            walk=1,
            at=decision.run.at,
            actor=next((one.by for one in asked if one.command in decision.commands), self._actor),
            definition="",
            events=decision.events,
            commands=decision.commands,
        )
        causation = decision.commands[0] if decision.commands else None
        return await self._append(key, run, decision, decision.run, commit, tries=None, causation=causation)


async def _nothing(decision: Decision, run: Run | None) -> Committed:
    """Nothing is appended."""
    return Committed(decision, run, False)
