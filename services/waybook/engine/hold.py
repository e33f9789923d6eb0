"""Why a run is not moving, and its next move: the engine's dimension beside the lifecycle state (DESIGN 1, 2.9)."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from waybook.engine import starts
from waybook.engine.approvals import open_approvals
from waybook.engine.definition import FAILED, Definition
from waybook.engine.dispatch import limit_reached, missing_inputs
from waybook.engine.run import Action, Run, titled
from waybook.engine.stall import OpenRequest, false_preconditions, open_requests, waits_for
from waybook.engine.times import iso
from waybook.events.engine import ApprovalRequested

HoldKind = Literal["none", "waiting", "retry", "reconciling", "dead command", "no worker"]


class Hold(msgspec.Struct, frozen=True):
    """`reason` is a stable word, `until` ms UTC when a timer will end it, `text` for people."""

    kind: HoldKind
    reason: str | None = None
    until: int | None = None
    text: str = ""


MOVING = Hold("none")

MOST_ERRORS = 3
"""Errors of branches side by side that an answer tells."""


class DeadCommand(msgspec.Struct, frozen=True):
    """A command of a run that stands in DEAD undecided: too many deliveries, no commit. `at` in ms UTC."""

    command: str
    verb: str
    reason: str
    at: int


def hold(definition: Definition, run: Run, *, elsewhere: bool = False, dead: DeadCommand | None = None) -> Hold:
    """The hold of a run, derived from its folded state, and from what the caller knows of the world around it.

    `elsewhere`: a worker takes the lane of the run's definition, where `definition` does not carry it. `dead`: the
    newest command of the run that was given up undecided.
    """
    if run.operations and (reconciling := _reconciling(run)) is not None:
        return reconciling
    if run.ended:
        return MOVING
    own = definition.carries(run.definition)
    if not own and not elsewhere:
        return Hold("no worker", "definition", text=f"no worker carries definition {run.definition} of {run.agent}")
    stuck = _dead(run, dead)
    if stuck is not None:
        return stuck
    if run.taken_over is not None:
        return Hold("waiting", "taken_over", text=f"{run.taken_over} has taken it over; `hand-back` lets it go on")
    if run.state == FAILED:
        return _failed(run, definition if own else None)
    if run.approvals and (waiting := open_approvals(run)):
        name = next(iter(waiting))
        request = waiting[name].request
        return Hold(
            "waiting", "approval", request.expires, f"{request.summary or request.action}: {_who(name, request)}"
        )
    if run.open or run.offers:
        return MOVING
    if run.timers:
        return _timer(run)
    return _parked(run, definition if own else None)


def _who(name: str, request: ApprovalRequested) -> str:
    """Who has to decide, and until when."""
    people = " or ".join(request.deciders) or f"whoever holds the grant decide:{request.action}"
    until = f" until {iso(request.expires)}" if request.expires is not None else ""
    return f"{people} decides on approval {name}{until}"


def _reconciling(run: Run) -> Hold | None:
    """An operation whose outcome is unknown or disputed; a timer asks again where the other side may still tell."""
    unknown = {key: o for key, o in run.operations.items() if o.outcome == "unknown"}
    for key, operation in unknown.items():
        until = min((t.due for t in run.timers.values() if t.about in unknown), default=None)
        who = "a person settles it" if until is None else "the other side is asked again, or a person settles it"
        text = f"whether {operation.intent.name} ({key}) took effect is unknown; {who}"
        return Hold("reconciling", "unknown_outcome", until, text)
    for key, operation in run.operations.items():
        if operation.disputed:
            text = f"{operation.intent.name} ({key}) has two outcomes: {operation.outcome} and {operation.disputed[0]}"
            return Hold("reconciling", "disputed", text=f"{text}; a person settles it")
    return None


def _dead(run: Run, dead: DeadCommand | None) -> Hold | None:
    """A run that has not moved since a command of it was given up, and in which nothing runs."""
    if dead is None or dead.at < run.at or dead.command in run.applied:
        return None
    if any(a.status == "running" for a in run.open_actions()):
        return None
    text = f"its command {dead.verb} ({dead.command}) stands in DEAD: {dead.reason}; give it again"
    return Hold("dead command", "undelivered", text=text)


def _parked(run: Run, definition: Definition | None) -> Hold:
    """What a run waits for that has nothing under way; another definition's table is not known here."""
    if definition is None:
        return _exhausted(run, None) or Hold(
            "waiting", run.state, text=f"{run.state}: its own definition says for what"
        )
    reason = definition.table.waits.get(run.state)
    if reason is not None:
        return Hold("waiting", reason, text=f"{run.state}: waits for {reason}")
    return _exhausted(run, definition) or MOVING


def _failed(run: Run, definition: Definition | None) -> Hold:
    stuck = _exhausted(run, definition)
    pending = (run.timers.get(r.timer) for r in run.retries.values())
    due = [timer.due for timer in pending if timer is not None and timer.timer_class == "retry"]
    if stuck is None and due:
        return Hold("retry", "retry", min(due), "a failed step is tried again")
    return stuck or Hold("waiting", "exhausted", text="no automatic retry is left; a person decides")


def _exhausted(run: Run, definition: Definition | None) -> Hold | None:
    """What only a person can take up again: a step out of attempts, or one that killed its workers too often."""
    for key, action_id in run.executions.items():
        action = run.actions[action_id]
        if not action.exhausted or not key.startswith(f"{run.walk}:"):
            continue
        if action.status == "abandoned" and action.command in run.convicted:
            return Hold("dead command", "convicted", text=run.convicted[action.command])
        if definition is None or definition.steps[action.step].stop_on_error:
            return Hold("waiting", "exhausted", text=f"{action.title} is out of attempts; a person decides")
    return None


def _timer(run: Run) -> Hold:
    due = min(run.timers.values(), key=lambda t: t.due)
    if due.timer_class == "retry":
        return Hold("retry", "retry", due.due, "a failed step is tried again")
    if due.about.startswith(starts.ABOUT):
        reason = due.about.removeprefix(starts.ABOUT)
        return Hold("waiting", reason, due.due, f"it came too fast after others of its sender; begins {iso(due.due)}")
    if due.timer_class == "wait" and due.about in run.retries:
        return Hold("waiting", "rate_limit", due.due, f"told to wait by the other side; goes on at {iso(due.due)}")
    return Hold("waiting", due.timer_class, due.due, f"waits for a timer ({due.timer_class})")


class Waiting(msgspec.Struct, frozen=True):
    """An approval that waits for a decision. `deciders` empty: whoever holds `grant`. `until` in ms, UTC."""

    approval: str
    action: str
    resource: str
    digest: str
    deciders: tuple[str, ...]
    grant: str
    until: int | None
    summary: str | None


class PassedOver(msgspec.Struct, frozen=True):
    """An execution that failed for good, and without whose result the run goes on (`stop_on_error=False`).

    `step` with its branch, `trigger` the event that it worked on, `attempt` its last one, `type` and `text` its error.
    """

    step: str
    trigger: str
    attempt: int
    type: str
    text: str


class Why(msgspec.Struct, frozen=True):
    """The answer of `waybook why`: the next move, or the named blocker.

    `missing`: by step, the event types it still waits for. `requests`: questions that nobody answered. `preconditions`:
    by step, which one keeps it from running, and for which event it was false last. `limits`: steps that may not be executed any more.
    `approvals`: what people have to decide, who may, and until when. `because`: how it came to stand there. `passed_over`:
    failures of this walk that did not stop it. `answers`: types of events from outside, one of which answers the requests.
    `unsettled`: side effects whose outcome a person may tell.
    """

    state: str
    hold: Hold
    next_move: str
    running: tuple[str, ...] = ()
    missing: dict[str, tuple[str, ...]] = {}
    requests: tuple[OpenRequest, ...] = ()
    preconditions: dict[str, str] = {}
    limits: tuple[str, ...] = ()
    error: str | None = None
    approvals: tuple[Waiting, ...] = ()
    because: str | None = None
    passed_over: tuple[PassedOver, ...] = ()
    answers: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()


def why(
    definition: Definition,
    run: Run,
    *,
    scheduler: bool = False,
    elsewhere: bool = False,
    dead: DeadCommand | None = None,
) -> Why:
    """What an open run does next or who has to act. `scheduler`: whether a scheduler serves its timers; `hold` on the rest."""
    held = hold(definition, run, elsewhere=elsewhere, dead=dead)
    known = not run.ended and definition.carries(run.definition)
    running = [a for a in run.open_actions() if a.status == "running"]
    return Why(
        state=run.state,
        hold=held,
        next_move=_next_move(definition if known else None, run, held, running, scheduler),
        running=tuple(a.title for a in running),
        missing=missing_inputs(definition, run) if known else {},
        requests=open_requests(definition, run) if known else (),
        preconditions=false_preconditions(definition, run) if known and definition.gates else {},
        limits=tuple(s.name for s in definition.steps.values() if limit_reached(s, run)) if known else (),
        error=_last_error(run),
        approvals=tuple(_waiting(name, a.request) for name, a in open_approvals(run).items()),
        because=_because(definition, run) if definition.carries(run.definition) else None,
        passed_over=_passed_over(definition, run),
        answers=tuple(name for name, kind in definition.kinds.items() if kind == "external") if known else (),
        unsettled=tuple(key for key, o in run.operations.items() if o.outcome == "unknown" or o.disputed),
    )


def _passed_over(definition: Definition, run: Run) -> tuple[PassedOver, ...]:
    lenient = {step.name for step in definition.steps.values() if not step.stop_on_error}
    newest = (run.actions[a] for key, a in run.executions.items() if lenient and key.startswith(f"{run.walk}:"))
    return tuple(
        PassedOver(a.title, a.trigger, a.attempt, a.error.type, a.error.text)
        for a in newest
        if a.step in lenient and a.status == "failed" and a.error is not None
    )


def _because(definition: Definition, run: Run) -> str | None:
    explain = definition.table.because.get(run.state)
    return explain(run) if explain is not None else None


def _waiting(name: str, request: ApprovalRequested) -> Waiting:
    return Waiting(
        approval=name,
        action=request.action,
        resource=request.resource,
        digest=request.digest,
        deciders=request.deciders,
        grant=f"decide:{request.action}",
        until=request.expires,
        summary=request.summary,
    )


def _next_move(definition: Definition | None, run: Run, held: Hold, running: list[Action], scheduler: bool) -> str:
    if run.ended and held.kind == "none":
        return f"none: the run has ended as {run.outcome}" + (f" ({run.reason})" if run.reason else "")
    if held.kind == "retry" and held.until is not None:
        return f"retry due {iso(held.until)}" + ("" if scheduler else ", no scheduler")
    if definition is not None and held.reason == "deadline" and held.until is not None:
        return f"{waits_for(definition, run)[1]}; until {iso(held.until)}"
    if held.kind != "none":
        return held.text
    if running:
        return "running " + _counted(f"{a.title} (attempt {a.attempt})" for a in running)
    if any(a.status == "released" for a in run.open_actions()):
        return "a redelivery of its command takes up the released steps"
    if run.offers:
        return "offered to a worker: " + _counted(titled(o.step, o.branch) for o in run.offers.values())
    if definition is not None:
        return waits_for(definition, run)[1]
    return "nothing is under way: `continue` looks for a lost next move"


def _counted(names: Iterable[str]) -> str:
    """Each name once, with how often it stands there: a wide run has hundreds."""
    return ", ".join(name if times == 1 else f"{name} ×{times}" for name, times in Counter(names).items())


def _last_error(run: Run) -> str | None:
    if run.state != FAILED:
        return None
    if run.gate_failure is not None and not run.open:
        return f"{run.gate_failure[0]}: {run.gate_failure[1].text}"
    newest = (run.actions[a] for key, a in run.executions.items() if key.startswith(f"{run.walk}:"))
    failed = [a for a in newest if a.status == "failed" and a.error is not None]
    failed = [a for a in failed if a.exhausted] or failed
    if len(failed) > 1:  # side by side
        return "; ".join(f"{a.title}: {a.error.text}" for a in failed[:MOST_ERRORS] if a.error is not None)
    last = next((a for a in reversed(run.actions.values()) if a.error is not None), None)
    told = failed[0] if failed else last
    return f"{told.title}: {told.error.text}" if told is not None and told.error is not None else None
