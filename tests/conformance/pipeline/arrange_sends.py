"""Arranging what belongs to a send: its undo window, its operations as recorded attempts."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.scribe import Scribe

from waybook.engine import approvals, windows
from waybook.engine.lifecycle import names_of, take_row
from waybook.engine.operations import CLOCK_MARGIN_MS
from waybook.engine.recorder import Recorder
from waybook.events import engine as e
from waybook.inbox.events import SendDue
from waybook.inbox.sending import KEY

Given = Mapping[str, Any]
READ = frozenset({"name", "status", "params", "provider_id", "find", "intended_seconds_ago"})
OUTCOMES: dict[str, Any] = {"succeeded": "succeeded", "failed": "failed", "unknown": "unknown"}


async def window(scribe: Scribe, given: Given, now: int) -> None:
    """The undo window as given: due so many seconds from now, or over without a trace."""
    unread = set(given) - {"in_seconds", "fired"}
    if unread:
        raise Unsupported(f"given.message.pendingAutoSend.{', '.join(sorted(unread))}: not arranged yet")
    timer = windows.pending(scribe.run)
    if timer is None:
        raise Unsupported("given.message.pendingAutoSend: the run has no undo window")
    if given.get("fired"):
        await scribe.commit(lambda recorder: _record(recorder, e.TimerFired(timer=timer)))
        return
    due = now + round(float(given["in_seconds"]) * 1000)
    about = scribe.run.timers[timer].about
    armed = e.TimerArmed(timer_class="send", due=due, about=about)
    await scribe.commit(lambda recorder: _record(recorder, e.TimerCancelled(timer=timer, reason="arranged"), armed))


def _record(recorder: Recorder, *events: e.EngineEvent) -> None:
    for event in events:
        recorder.record(event)


async def operations(scribe: Scribe, rows: Sequence[Given], adapter: Given, now: int) -> None:
    """The send as far as it came: begun, intended, and its outcome where there is one."""
    if not rows:
        return
    wrong = [r for r in rows if r.get("name") != "send" or set(r) - READ]
    if wrong or len(rows) > 1:
        raise Unsupported("given.operations: only one send is arranged yet")
    (row,) = rows
    if "intended_seconds_ago" in row:
        scribe.at = now - round(float(row["intended_seconds_ago"]) * 1000)
    await scribe.commit(_fire)
    action = await scribe.begin("send")
    call_ms = round(float(adapter.get("deadline_s", 30)) * 1000)
    settle_ms = round(float(adapter.get("settle_s", 0)) * 1000)
    await scribe.commit(lambda recorder: _intend(recorder, row, action, call_ms))
    status = row["status"]
    if status == "open":  # its worker stopped; nobody counts that as a failure, and no suspect has to run alone
        released = e.ActionReleased(action=action, reason="stop")
        await scribe.commit(lambda recorder: _record(recorder, released))
        return
    await scribe.commit(lambda recorder: _settle(recorder, row, action, settle_ms))


def _fire(recorder: Recorder) -> None:
    timer = windows.pending(recorder.run)
    assert timer is not None
    output = windows.ends(recorder, timer)
    name = recorder.record(e.EventPublished(event=output.event, schema=output.schema, payload=output.payload))
    take_row(recorder, names_of(recorder, output.event), output.value, name)


def _intend(recorder: Recorder, row: Given, action: str, call_ms: int) -> None:
    published = recorder.run.visible[SendDue.__name__][-1]
    due = recorder.definition.decode(published.event, published.schema, published.payload)
    assert isinstance(due, SendDue) and due.reply is not None
    key = f"send/mail/{KEY}/1"
    if due.approval is not None:
        _record(recorder, *approvals.use(recorder.run, due.approval, key))
    recorder.record(
        e.OperationIntended(
            key=key,
            name="mail",
            action=action,
            digest=due.reply.digest,
            params=due.reply.params(),
            deadline=recorder.now + call_ms,
            approval=due.approval,
            reservation=None,
            generation=1,
        )
    )


def _settle(recorder: Recorder, row: Given, action: str, settle_ms: int) -> None:
    key, operation = next(iter(recorder.run.operations.items()))
    outcome = OUTCOMES[row["status"]]
    evidence = {"provider_id": row["provider_id"]} if row.get("provider_id") else {}
    recorder.record(e.OperationSettled(key=key, outcome=outcome, by="call", evidence=evidence))
    if outcome == "unknown":
        until = operation.intent.deadline + settle_ms + CLOCK_MARGIN_MS
        recorder.record(e.TimerArmed(timer_class="wait", due=until, about=key))
        recorder.record(e.ActionReleased(action=action, reason="wait", until=until, about=key))
