"""Requests: work handed to another agent, and questions with a deadline; an event of the run settles each, once.

The link stands in the log: the caller's commit asks (`ChildRequested`), the child's start names its parent, and the
relay carries the child's end back. Whatever comes first, an answer or the deadline, settles the request.
"""

from typing import Any, Protocol

import msgspec

from waybook.engine.inputs import Accepted, ChildAnswer, Nothing, Outcome, Output
from waybook.engine.recorder import Recorder
from waybook.engine.run import Published
from waybook.engine.stall import is_asked
from waybook.events import engine as e
from waybook.events.command import StartPayload
from waybook.events.subjects import digest_token

RESPONSE, FAILURE = "AgentResponse", "AgentFailure"
"""Types of the two answers; whoever hands work on knows both."""

UNANSWERED = "Unanswered"
"""What stands in the place of a person's answer that did not come in time."""

ABOUT = "request:"
"""What the timer of a request's deadline is about, before the request's name."""


class Request(Protocol):
    """What the engine reads of an event that hands work on."""

    @property
    def agent(self) -> str: ...
    @property
    def start(self) -> str: ...
    @property
    def fields(self) -> dict[str, Any]: ...
    @property
    def schema(self) -> int: ...
    @property
    def timeout_ms(self) -> int | None: ...
    @property
    def configuration(self) -> dict[str, Any]: ...


def ask(recorder: Recorder, name: str, request: Request) -> None:
    """Asks for the run that the event `name` hands work to, and arms its deadline."""
    run = recorder.run
    start = StartPayload(
        event=request.start,
        schema=request.schema,
        body=msgspec.Raw(msgspec.json.encode(request.fields)),
        thread=run.thread,
        configuration=request.configuration,
        user=run.user,
        parent=e.Parent(agent=run.key.agent, run=run.key.run, request=name),
    )
    due = recorder.now + request.timeout_ms if request.timeout_ms is not None else None
    child = digest_token(str(run.key), name)
    payload = msgspec.Raw(msgspec.json.encode(start))
    recorder.record(e.ChildRequested(request=name, agent=request.agent, run=child, start=payload, deadline=due))
    if request.timeout_ms is not None:
        arm(recorder, name, request.timeout_ms)


def arm(recorder: Recorder, request: str, within_ms: int) -> None:
    """Arms the deadline of a request."""
    recorder.record(e.TimerArmed(timer_class="deadline", due=recorder.now + within_ms, about=f"{ABOUT}{request}"))


def disarm(recorder: Recorder, request: str) -> None:
    """Takes the deadline of a request back: it is answered."""
    for timer, pending in list(recorder.run.timers.items()):
        if pending.about == f"{ABOUT}{request}":
            recorder.record(e.TimerCancelled(timer=timer, reason="answered"))


def answer(recorder: Recorder, said: ChildAnswer) -> tuple[Output, str] | Outcome:
    """The event that answers a request, and the request's name; or what there is to say instead."""
    asked = _asked(recorder, said.request)
    if asked is None:
        return Nothing("resolved")
    disarm(recorder, asked.name)
    if said.stop is not None:
        return _output(
            recorder, RESPONSE, {"request": asked.name, "stop": said.stop, "fields": said.fields}
        ), asked.name
    message = said.error or f"the run of {said.agent} ended as {said.outcome} without a stop event"
    return _output(recorder, FAILURE, {"request": asked.name, "message": message}), asked.name


def expire(recorder: Recorder, timer: str) -> tuple[Output, str] | Outcome | None:
    """What a fire of a request's deadline brings; None when the timer is no such thing."""
    pending = recorder.run.timers.get(timer)
    if pending is None or not pending.about.startswith(ABOUT):
        return None
    recorder.record(e.TimerFired(timer=timer))
    name = pending.about.removeprefix(ABOUT)
    if recorder.run.ended or name in recorder.run.answered:
        return Accepted()
    asked = recorder.run.event(name)
    child = recorder.run.children.get(name)
    if child is None:
        return _output(recorder, UNANSWERED, {"request": name, "event": asked.event}), name
    message = f"{child.agent} did not answer request {name} by its deadline"
    _cancel(recorder, child, message)
    return _output(recorder, FAILURE, {"request": asked.name, "message": message}), asked.name


def cancel_children(recorder: Recorder, reason: str) -> None:
    """Asks the runs that work on open requests to stop."""
    for name, child in recorder.run.children.items():
        if name not in recorder.run.answered:
            _cancel(recorder, child, reason)


def forget_requests(recorder: Recorder, reason: str) -> None:
    """After a restart: who works on requests of former walks is asked to stop, and their deadlines are taken back."""
    run = recorder.run
    for name, child in run.children.items():
        if name not in run.answered and not is_asked(run, name):
            _cancel(recorder, child, reason)
    for timer, pending in list(run.timers.items()):
        if pending.about.startswith(ABOUT) and not is_asked(run, pending.about.removeprefix(ABOUT)):
            recorder.record(e.TimerCancelled(timer=timer, reason="restarted"))


def _cancel(recorder: Recorder, child: e.ChildRequested, reason: str) -> None:
    recorder.record(e.CancelRequested(target=f"{child.agent}.{child.run}", reason=reason))


def _asked(recorder: Recorder, request: str) -> Published | None:
    """The request of that name, while it waits for its answer."""
    run = recorder.run
    if run.ended or request in run.answered or request not in run.children or not is_asked(run, request):
        return None
    return run.event(request)


def _output(recorder: Recorder, event: str, fields: dict[str, Any]) -> Output:
    payload = msgspec.Raw(msgspec.json.encode(fields))
    return Output(event, 1, payload, recorder.definition.decode(event, 1, payload))
