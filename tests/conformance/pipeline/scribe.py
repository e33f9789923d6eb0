"""Writes arranged history: commits made with the engine's own parts, appended through the port."""

from collections.abc import Callable
from typing import Any

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.policy import Policy
from waybook.engine.aggregates.thread import Thread
from waybook.engine.approvals import ABOUT, ask_for_state, open_approvals
from waybook.engine.decide import commit_of
from waybook.engine.dispatch import begin, bind
from waybook.engine.fold import seal
from waybook.engine.inputs import Decision, World
from waybook.engine.lifecycle import move, names_of, take_row
from waybook.engine.ports import Draft, StateLog
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.run import Published, Run
from waybook.events import engine as e
from waybook.events.codec import Codec, commit_headers, commit_id
from waybook.events.engine import Claim
from waybook.events.subjects import RunKey, state_subject
from waybook.events.typed import Event
from waybook.inbox.events import DraftApproved

NOBODY = Holder("arranged", Claim(0, 0, 1))
"""Under whom arranged steps ran."""

Write = Callable[[Recorder], None]


class Scribe:
    """Writes one run's arranged history. `at` is the time of the next commit, ms UTC."""

    def __init__(self, definition: AgentDefinition, log: StateLog, codec: Codec, key: RunKey, at: int) -> None:
        self.definition = definition
        self.key = key
        self.at = at
        self.drafts: list[Draft] = []
        self._log = log
        self._codec = codec
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        assert self._run is not None
        return self._run

    async def commit(self, write: Write) -> None:
        """One commit of what `write` records; nothing when it records nothing."""
        engine = self.definition.engine
        recorder = Recorder(
            engine, self.key, self._run, self.at, World(policy=Policy(), grants=Grants(), thread=Thread())
        )
        write(recorder)
        if not recorder.events:
            return
        after = recorder.run
        seal(after, recorder.version, self.at, engine.hash, recorder.commands)
        decision = Decision(tuple(recorder.events), (), tuple(recorder.commands), after)
        commit = commit_of(decision, engine, "arranged")
        subject, expected = state_subject(self.key), self._run.sequence if self._run is not None else 0
        payload = self._codec.encode(commit)
        identity = commit_id(subject, expected, payload)
        previous = self._run.commit if self._run is not None else None
        headers = commit_headers(commit, commit_id=identity, previous=previous or None)
        draft = Draft(subject, expected, payload, headers, identity)
        after.sequence = await self._log.append(draft)
        after.commit = identity
        self._run = after
        self.drafts.append(draft)
        self.at += 1

    async def start(self, event: Event, *, thread: str | None, configuration: dict[str, Any]) -> None:
        """The run is stored in its initial state; its start event is there, no row applied."""
        engine = self.definition.engine

        def write(recorder: Recorder) -> None:
            started = e.RunStarted(
                agent=engine.agent,
                definition=engine.hash,
                state=engine.table.initial,
                configuration=configuration,
                thread=thread,
            )
            recorder.record(started)
            self._publish(recorder, event, None)

        await self.commit(write)

    async def begin(self, step: str, holder: Holder = NOBODY) -> str:
        """Begins the step's next attempt; returns the action."""
        trigger, bindings = self._due(step)
        action: list[str] = []

        def write(recorder: Recorder) -> None:
            declared = self.definition.engine.steps[step]
            action.append(begin(recorder, declared, trigger.name, bindings, holder, branch=trigger.branch))
            if holder is not NOBODY:
                recorder.apply_command(holder.command)

        await self.commit(write)
        return action[0]

    async def operation(self, name: str, number: int, status: e.OperationOutcome, params: dict[str, Any]) -> None:
        """A side effect of an earlier attempt, and what came of it."""
        key = f"arranged/{name}/{number}"

        def write(recorder: Recorder) -> None:
            recorder.record(
                e.OperationIntended(
                    key=key, name=name, action="arranged", digest="arranged", params=params, deadline=self.at
                )
            )
            recorder.record(e.OperationSettled(key=key, outcome=status, by="call"))

        await self.commit(write)

    def _due(self, step: str) -> tuple[Published, e.Bindings]:
        declared = self.definition.engine.steps[step]
        for published in reversed(self.run.log):
            if published.event in declared.inputs:
                bindings = bind(declared, self.run, published)
                if bindings is not None:
                    return published, bindings
        raise LookupError(f"nothing in the arranged history triggers {step}")

    async def complete(
        self,
        action: str,
        event: Event,
        *,
        row: str | None = None,
        fields: dict[str, Any] | None = None,
        stays: bool = False,
    ) -> None:
        """Ends an attempt with `event`; the table disposes of it, or `row` is forced, or the run `stays`."""

        def write(recorder: Recorder) -> None:
            index = len(recorder.events) + 1
            recorder.record(e.StepCompleted(action=action, outputs=(index,), duration_ms=1))
            self._publish(recorder, event, action)
            if row is not None:
                self._force(recorder, row, type(event).__name__, fields or {})
            elif not stays:
                take_row(recorder, names_of(recorder, type(event).__name__), event)

        await self.commit(write)

    async def outside(self, event: Event, *, expires: int | None = None) -> None:
        """An event from outside, and the row that it takes. `expires`: until when the approval holds that it stands for."""

        def write(recorder: Recorder) -> None:
            if isinstance(event, DraftApproved):
                _approve(recorder, event.by, expires)
            self._publish(recorder, event, None)
            take_row(recorder, names_of(recorder, type(event).__name__), event)

        await self.commit(write)

    async def force(self, row: str, fields: dict[str, Any] | None = None, reason: str | None = None) -> None:
        """A transition that no event of the history drives."""
        on = next(r.on for r in self.definition.engine.table.rows if r.name == row)
        await self.commit(lambda recorder: self._force(recorder, row, on or "Move", fields or {}, reason))

    def _force(self, recorder: Recorder, name: str, on: str, fields: dict[str, Any], reason: str | None = None) -> None:
        row = next(r for r in self.definition.engine.table.rows if r.name == name)
        assert row.next is not None
        move(recorder, row.name, row.next, on, fields, reason)

    async def set_fields(self, fields: dict[str, Any]) -> None:
        """Fields that no transition on the way writes."""
        await self.commit(lambda recorder: _set(recorder, fields))

    def _publish(self, recorder: Recorder, event: Event, action: str | None) -> str:
        output = self.definition.output(event)
        return recorder.record(
            e.EventPublished(event=output.event, schema=output.schema, payload=output.payload, action=action)
        )


def _approve(recorder: Recorder, by: str, expires: int | None) -> None:
    """The decision that a person's approval comes of."""
    for name, approval in list(open_approvals(recorder.run).items()):
        if expires is not None:
            recorder.record(e.ApprovalRevoked(approval=name, reason="replaced"))
            name = recorder.record(msgspec.structs.replace(approval.request, expires=expires))
            recorder.record(e.TimerArmed(timer_class="deadline", due=expires, about=f"{ABOUT}{name}"))
        recorder.record(
            e.ApprovalDecided(
                approval=name, decision="approved", by=by, received_at=recorder.now, policy=0, grants=0, reason=None
            )
        )


def _set(recorder: Recorder, fields: dict[str, Any]) -> None:
    recorder.record(e.FieldsSet(row="given", fields=fields))
    ask_for_state(recorder)
