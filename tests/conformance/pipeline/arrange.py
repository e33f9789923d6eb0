"""Arranging: a run's history up to the given state, written as the steps, people and failures on the way write it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import results
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.names import STATE_OF_STEP, STEPS, to_case, to_product
from tests.conformance.pipeline.path import way, waypoints
from tests.conformance.pipeline.scribe import Scribe

from waybook.engine.definition import FAILED, Row
from waybook.engine.digest import idempotency_key
from waybook.engine.inputs import Failed, Retry
from waybook.engine.lifecycle import move, take_row
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.retry import fail
from waybook.events import engine as e
from waybook.events.engine import Failure
from waybook.inbox.intake.mail import ParsedMail

GivenRow = Mapping[str, Any]
MINUTE_MS = 60_000

IN_FLIGHT = frozenset({"security_check", "classifying", "drafting"})
"""States in which an arranged run has a next step."""


class Arranger:
    """Writes the history of one message. `next_step` is the step that the case runs first, if it names one."""

    def __init__(
        self,
        message: Message,
        scribe: Scribe,
        rows: Sequence[GivenRow],
        next_step: str | None,
        owner: Holder,
        now: int,
    ) -> None:
        self.message = message
        self.scribe = scribe
        self.given = message.given_fields()
        self.rows = list(rows)
        self.next_step = next_step
        self.owner = owner
        self.now = now
        self.approval_ends: int | None = None
        self.done: set[str] = set()
        self.mail = ParsedMail()

    async def write(self, start: results.StartEvent) -> None:
        """From nothing to the given state."""
        self.mail = start.event.mail
        await self.scribe.start(start.event, thread=start.thread, configuration=start.configuration)
        target = self.message.state
        for waypoint in waypoints(self.given, self.rows, target):
            await self._go_to(waypoint)
        for beyond in self._beyond(target):
            await self._go_to(beyond)
            await self._place_at(beyond)
        await self._go_to(target)
        await self._place_at(target)
        if self.scribe.run.state == FAILED != target:
            await self._reset(target)
        await self._left_over()
        self.message.hand_over = target in (*IN_FLIGHT, "received") and not self.scribe.run.open

    def _beyond(self, target: str) -> list[str]:
        """States of given rows that lie after the target: the run has been there and was reset."""
        if target in ("archived", FAILED, "rejected", "sent"):
            return []
        order = list(dict.fromkeys(STATE_OF_STEP.values()))
        states = {STATE_OF_STEP[r["kind"]] for r in self.rows if r["status"] in ("failed", "pending")}
        place = order.index(target) if target in order else -1
        return [s for s in order if s in states and order.index(s) > place] if target in (*order, "received") else []

    # --- on the way

    async def _go_to(self, target: str) -> None:
        """On to a state; where a given row failed on the way, by the retry's reset."""
        if self.scribe.run.state == FAILED != target != "archived":
            await self._reset(target)
        for row in way(self.scribe.definition.engine.table, self.scribe.run.state, target):
            if row.next == "approved":
                self._at_approval()
            await self._take(row)
            if self.scribe.run.state == FAILED != target:
                await self._go_to(target)
                return

    async def _take(self, row: Row) -> None:
        """One transition, with the steps of the state that it leaves completed before it."""
        state = self.scribe.run.state
        steps = [s for s in STEPS if STATE_OF_STEP[s] == state and s not in self.done]
        if row.state == "*" or state not in IN_FLIGHT:
            given = [number for number, s in enumerate(steps, 1) if any(r["kind"] == s for r in self.rows)]
            steps = steps[: given[-1]] if given else []
        for step in steps:
            leaves = row if step == [s for s in STEPS if STATE_OF_STEP[s] == state][-1] else None
            if await self._given_attempts(step, leaves):
                return
            if step not in self.done:
                await self._complete(step, leaves)
        if self.scribe.run.state == state:
            await self._leave(row)

    async def _complete(self, step: str, row: Row | None, given: GivenRow | None = None) -> None:
        """The step ends with the given fields, or else the default result, as its output; `row` is the way on."""
        action = await self.scribe.begin(step)
        if given is not None:
            self._name(given, action)
        event = results.arranged(step, self.given, row, given, self.mail, self.scribe.at)
        driven = row is not None and row.on == type(event).__name__
        moves = row is not None and not driven
        await self.scribe.complete(
            action,
            event,
            row=row.name if moves and row is not None else None,
            fields=results.fields_of(event) if moves else None,
            stays=row is None and STATE_OF_STEP[step] != "drafting",
        )
        self.done.add(step)

    async def _leave(self, row: Row) -> None:
        """A transition that no step makes: a person's, the mail service's, or a direct one."""
        event = results.from_outside(row, self.given)
        if event is not None:
            await self.scribe.outside(event, expires=self.approval_ends)
            return
        fields = {k: v for k, v in results.row_fields(row, self.given).items() if v is not None}
        if row.next == "sent":
            key = self.scribe.run.key
            fields["sent_message_id"] = f"<{idempotency_key(key, 'send/mail/reply/1')}.{key.run}@ours.example>"
        await self.scribe.force(row.name, fields, self.given.get("archiveReason"))

    def _at_approval(self) -> None:
        minutes = self.message.given.get("approved_minutes_ago")
        if minutes is not None:
            self.scribe.at = self.now - round(minutes * MINUTE_MS)

    # --- given rows

    async def _given_attempts(self, step: str, leaves: Row | None = None) -> bool:
        """Records the rows given for this step; True when they leave it unfinished: failed, or running."""
        for row in [r for r in self.rows if r["kind"] == step]:
            self.rows.remove(row)
            status = row["status"]
            if status == "completed":
                await self._complete(step, leaves, row)
            elif status == "running":
                await self._failures(step, row.get("retryCount", 0), row, named=False)
                self._name(row, await self.scribe.begin(step, self.owner))
                return True
            elif status in ("failed", "pending"):
                await self._failures(step, max(1, row.get("retryCount", 1)), row, named=True)
                if status == "pending":
                    await self._reset("received")
                return True
            elif status == "abandoned":
                await self._abandon(step, row)
            else:
                raise Unsupported(f"given.action_rows: a row that is {status}")
        return False

    def _name(self, row: GivenRow, action: str) -> None:
        if "id" in row:
            self.message.rows[row["id"]] = action
            self.message.given_as[row["id"]] = row["status"]

    async def _failures(self, step: str, times: int, row: GivenRow, *, named: bool) -> None:
        """So many failed attempts; the last is the given row when `named`, else the run goes on to the next one."""
        for number in range(1, times + 1):
            state = self.scribe.run.state
            action = await self.scribe.begin(step)
            final = number == times
            if final and named:
                self._name(row, action)
            gives_up = bool(row.get("exhausted")) and final and named
            text = row.get("errorMessage") or self.given.get("errorMessage") or "failed"
            failure = Failure("Exception", text, retryable=not gives_up)
            await self.scribe.commit(partial(_fail, action=action, failure=failure))
            if not (final and named):
                await self._reset(state)

    async def _abandon(self, step: str, row: GivenRow) -> None:
        action = await self.scribe.begin(step)
        self._name(row, action)
        failures = max(1, row.get("retryCount", 1))
        lost = e.ActionAbandoned(action=action, reason="lost", failures=failures, exhausted=bool(row.get("exhausted")))
        await self.scribe.commit(partial(_abandon, lost=lost))

    async def _reset(self, target: str) -> None:
        """The retry's reset: its timer fires, the recorded way is gone again up to `target`, nothing begins yet."""
        await self.scribe.commit(lambda recorder: _walk_back(recorder, target))

    # --- where it stands

    async def _place_at(self, target: str) -> None:
        """Within a state of several steps: what comes before the next step is completed."""
        if self.scribe.run.state != target or target not in IN_FLIGHT:
            return
        steps = [s for s in STEPS if STATE_OF_STEP[s] == target]
        upto = steps.index(self.next_step) if self.next_step in steps else self._default_place(target, steps)
        for place, step in enumerate(steps):
            if await self._given_attempts(step):
                return
            if place < upto and step not in self.done:
                await self._complete(step, None)

    def _default_place(self, target: str, steps: Sequence[str]) -> int:
        """A draft that is given has been drafted."""
        drafted = target == "drafting" and self.given.get("draftResponse") is not None
        return steps.index("route") if drafted and self.next_step is None else 0

    async def _left_over(self) -> None:
        """Given fields that nothing on the way wrote."""
        written = to_case(self.scribe.run.fields)
        missing = {
            k: v
            for k, v in self.given.items()
            if v is not None and written.get(k) != v and not _covers(written.get(k), v)
        }
        if missing:
            await self.scribe.set_fields(to_product(missing))


def _covers(written: Any, given: Any) -> bool:
    """Whether an object that was written holds all that is given."""
    if isinstance(written, Mapping) and isinstance(given, Mapping):
        return all(_covers(written.get(k), v) for k, v in given.items())
    return bool(written == given)


def _abandon(recorder: Recorder, lost: e.ActionAbandoned) -> None:
    """The lost attempt, and the next one of its execution asked for, since nothing else would ever begin it."""
    recorder.record(lost)
    if not lost.exhausted:
        action = recorder.run.actions[lost.action]
        recorder.record(
            e.StepOffered(
                step=action.step,
                trigger=action.trigger,
                walk=action.walk,
                bindings=action.bindings,
                branch=action.branch,
            )
        )


def _fail(recorder: Recorder, action: str, failure: Failure) -> None:
    failed = Failed(action, failure, 1)
    fail(recorder, failed, recorder.run.actions[action])


def _walk_back(recorder: Recorder, target: str) -> None:
    run = recorder.run
    for waiting in list(run.retries.values()):
        if waiting.timer in run.timers:
            recorder.record(e.TimerFired(timer=waiting.timer))
    recorded = list(run.path)
    take_row(recorder, ("RetryRequested",), Retry("arranged"))
    for action in list(run.actions.values()):
        if action.status == "completed":
            recorder.record(e.StepReused(step=action.step, trigger=action.trigger, action=action.id))
    for step in recorded:
        if recorder.run.state == target:
            return
        if step.from_state == recorder.run.state:
            move(recorder, step.row, step.to_state, step.on, {}, "retry")
