"""Why a run is not moving, and its next move: the engine's dimension beside the lifecycle state (DESIGN 1, 2.9)."""

from typing import Literal

import msgspec

from waybook.engine.definition import FAILED, Definition
from waybook.engine.dispatch import missing_inputs
from waybook.engine.run import Action, Run

HoldKind = Literal["none", "waiting", "retry", "reconciling", "dead command", "no worker"]


class Hold(msgspec.Struct, frozen=True):
    """`reason` is a stable word, `until` ms UTC when a timer will end it, `text` for people."""

    kind: HoldKind
    reason: str | None = None
    until: int | None = None
    text: str = ""


MOVING = Hold("none")


def hold(definition: Definition, run: Run) -> Hold:
    """The hold of a run, derived from its folded state alone."""
    if any(o.outcome == "unknown" for o in run.operations.values()):
        return Hold("reconciling", "unknown_outcome", text="a side effect's outcome is unknown; settle it")
    if run.ended:
        return MOVING
    if run.convicted:
        return Hold("dead command", "convicted", text=next(reversed(run.convicted.values())))
    if run.state == FAILED:
        return _failed(run)
    pending = [(a, r) for a, r in run.approvals.items() if r.decided is None and r.revoked is None]
    if pending:
        return Hold("waiting", "approval", pending[0][1].request.expires, f"approval {pending[0][0]} is undecided")
    if any(a.status == "running" for a in run.open_actions()):
        return MOVING
    if run.timers:
        due = min(run.timers.values(), key=lambda t: t.due)
        return Hold("waiting", due.timer_class, due.due, f"waits for a timer ({due.timer_class})")
    reason = definition.table.waits.get(run.state)
    if reason is not None:
        return Hold("waiting", reason, text=f"{run.state}: waits for {reason}")
    return MOVING


def _failed(run: Run) -> Hold:
    if run.retries:
        due = min(r.due for r in run.retries.values())
        return Hold("retry", "retry", due, "a failed step is tried again")
    return Hold("waiting", "exhausted", text="no automatic retry is left; a person decides")


class Why(msgspec.Struct, frozen=True):
    """The answer of `waybook why`: the next move, or the named blocker."""

    state: str
    hold: Hold
    next_move: str
    running: tuple[str, ...] = ()
    missing: dict[str, tuple[str, ...]] = {}
    error: str | None = None


def why(definition: Definition, run: Run, *, scheduler: bool = False) -> Why:
    """What an open run does next or who has to act. `scheduler`: whether a scheduler serves its timers."""
    held = hold(definition, run)
    running = [a for a in run.open_actions() if a.status == "running"]
    return Why(
        state=run.state,
        hold=held,
        next_move=_next_move(run, held, running, scheduler),
        running=tuple(a.step for a in running),
        missing={} if run.ended else missing_inputs(definition, run),
        error=_last_error(run),
    )


def _next_move(run: Run, held: Hold, running: list[Action], scheduler: bool) -> str:
    if run.ended:
        return f"none: the run has ended as {run.outcome}"
    if held.kind == "retry":
        return f"retry due {held.until}" + ("" if scheduler else ", no scheduler")
    if held.kind != "none":
        return held.text
    if running:
        return "running " + ", ".join(f"{a.step} (attempt {a.attempt})" for a in running)
    if any(a.status == "released" for a in run.open_actions()):
        return "a redelivery of its command takes up the released steps"
    if run.offers:
        return "offered to a worker: " + ", ".join(o.step for o in run.offers.values())
    return "nothing is under way: `continue` looks for a lost next move"


def _last_error(run: Run) -> str | None:
    if run.state != FAILED:
        return None
    for action in reversed(run.actions.values()):
        if action.error is not None:
            return f"{action.step}: {action.error.text}"
    return None
