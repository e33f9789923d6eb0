"""What follows from a commit: timers to arm and to take back, commands to give. Pure."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from waybook.engine.inputs import ChildAnswer
from waybook.engine.ports import TimerRef
from waybook.events import engine as e
from waybook.events.command import SignalPayload
from waybook.events.commit import Commit, event_name
from waybook.events.headers import PARENT, types_of
from waybook.events.subjects import AGENT_TOKEN, RUN_TOKEN, RunKey
from waybook.services.scheduler.effects import ArmTimer, CancelTimer, Effect, Give, StopSends, command_id

log = logging.getLogger(__name__)

SKEW_MS = 2_000
"""Clocks may differ by that; a commit also takes a moment to be stored."""


class _Place(msgspec.Struct, frozen=True):
    """Where an event stands: its run, its name, who asked for the run."""

    key: RunKey
    name: str
    parent: e.Parent | None

    @property
    def asked_by(self) -> RunKey | None:
        return RunKey(self.key.tenant, self.parent.agent, self.parent.run) if self.parent is not None else None


def _armed(event: e.TimerArmed, at: _Place) -> Effect:
    return ArmTimer(TimerRef(at.key, at.name, event.timer_class, event.due))


def _cancelled(event: e.TimerCancelled, at: _Place) -> Effect:
    return CancelTimer(at.key, event.timer)


def _offered(event: e.StepOffered, at: _Place) -> Effect:
    payload = {"step": event.step, "trigger": event.trigger}
    return Give(command_id(at.key, at.name, "exec"), at.key, "exec", payload)


def _child_requested(event: e.ChildRequested, at: _Place) -> Effect | None:
    child = _run(at.key.tenant, event.agent, event.run)
    return Give(command_id(at.key, at.name, "start"), child, "start", event.start) if child is not None else None


def _cancel_requested(event: e.CancelRequested, at: _Place) -> Effect | None:
    """`target` names a run as `agent.run`; the tenant is always the asking run's own."""
    agent, _, run = event.target.rpartition(".")
    target = _run(at.key.tenant, agent.rpartition(".")[2], run)
    if target is None:
        return None
    return Give(command_id(at.key, at.name, "cancel"), target, "cancel", {"reason": event.reason})


def _told(event: e.RunTold, at: _Place) -> Effect | None:
    """A fact for another run of the tenant is a signal, one for a system aggregate a record."""
    told = _run(at.key.tenant, event.agent, event.run)
    if told is None:
        return None
    verb = "record" if event.agent.startswith("@") else "signal"
    payload = SignalPayload(event=event.event, body=event.body, schema=event.schema)
    return Give(command_id(at.key, at.name, "tell"), told, verb, payload)


def _run(tenant: str, agent: str, run: str) -> RunKey | None:
    """The run of these names; None, with an error in the log, for what no subject may name."""
    if AGENT_TOKEN.fullmatch(agent) and RUN_TOKEN.fullmatch(run):
        return RunKey(tenant, agent, run)
    log.error("a commit names a run that cannot be", extra={"action": "relay_no_run", "agent": agent, "run": run})
    return None


def _ended(event: e.RunEnded, at: _Place) -> Effect | None:
    return _answer(at, event.outcome, result=event.result, error=event.reason)


def _failed(event: e.StepFailed, at: _Place) -> Effect | None:
    return _answer(at, "exhausted", error=event.error.text) if event.exhausted else None


def _abandoned(event: e.ActionAbandoned, at: _Place) -> Effect | None:
    return _answer(at, "exhausted", error="its worker was lost") if event.exhausted else None


def _answer(at: _Place, outcome: str, *, result: str | None = None, error: str | None = None) -> Effect | None:
    if at.parent is None or at.asked_by is None:
        return None
    payload = ChildAnswer(at.parent.request, at.key.agent, at.key.run, outcome, result=result, error=error)
    return Give(command_id(at.key, at.name, "answer"), at.asked_by, "answer", payload)


def _kill_switch(event: e.KillSwitchSet, at: _Place) -> Effect | None:
    return StopSends(at.key.tenant, f"{at.key}/{at.name}") if event.on else None


_RULES: Mapping[type, Callable[[Any, _Place], Effect | None]] = {
    e.TimerArmed: _armed,
    e.TimerCancelled: _cancelled,
    e.StepOffered: _offered,
    e.ChildRequested: _child_requested,
    e.CancelRequested: _cancel_requested,
    e.RunTold: _told,
    e.KillSwitchSet: _kill_switch,
    e.RunEnded: _ended,
    e.StepFailed: _failed,
    e.ActionAbandoned: _abandoned,
}
_OF_CHILDREN = frozenset({e.RunEnded.__name__, e.StepFailed.__name__, e.ActionAbandoned.__name__})

WANTED = frozenset(kind.__name__ for kind in _RULES) - _OF_CHILDREN
"""Types that matter in any run. What ends a run or a step matters in a child's only, whose commits name its parent."""


def matters(headers: Mapping[str, str]) -> bool:
    """Whether anything may follow from a commit with these headers."""
    types = types_of(headers)
    if types is None:
        return True
    return not WANTED.isdisjoint(types) or (PARENT in headers and not _OF_CHILDREN.isdisjoint(types))


def follow(
    key: RunKey, commit: Commit, headers: Mapping[str, str], indexes: Iterable[int] | None = None
) -> tuple[Effect, ...]:
    """What follows from a commit of the run `key`, in order.

    `indexes` are those of its events, where some that this program does not know were left out. What the commit
    itself takes back or resolves is not armed.
    """
    parent = parent_of(headers)
    numbered = zip(indexes if indexes is not None else range(len(commit.events)), commit.events, strict=True)
    effects: list[Effect] = []
    for index, event in numbered:
        rule = _RULES.get(type(event))
        effect = rule(event, _Place(key, event_name(commit.version, index), parent)) if rule is not None else None
        if effect is not None:
            effects.append(effect)
    return tuple(effects)


def by_server_clock(effect: Effect, committed_at: int, stored_at: int) -> Effect:
    """`effect` with a retry or a wait as long as it was meant, where the walker's clock and the server's differ.

    `committed_at` is the walker's clock at the commit, `stored_at` the server's. With a walker's clock that is an hour
    behind every retry would be due at once, and three failures be used up in a second. What ends at an hour of the day
    (a deadline, an undo window) keeps it.
    """
    if not isinstance(effect, ArmTimer) or effect.timer.timer_class not in ("retry", "wait"):
        return effect
    if abs(stored_at - committed_at) <= SKEW_MS:
        return effect
    due = stored_at + max(0, effect.timer.due - committed_at)
    return ArmTimer(msgspec.structs.replace(effect.timer, due=due))


def without_useless(effects: Iterable[Effect]) -> list[Effect]:
    """`effects` without arming what one of them takes back. That stays: the timer may have been armed before."""
    given = list(effects)
    taken_back = {(c.key, c.name) for c in given if isinstance(c, CancelTimer)}
    return [one for one in given if not isinstance(one, ArmTimer) or (one.timer.key, one.timer.name) not in taken_back]


def parent_of(headers: Mapping[str, str]) -> e.Parent | None:
    """Who asked for the run of a commit with these headers."""
    named = headers.get(PARENT)
    if named is None:
        return None
    agent, run, request = cast(tuple[str, str, str], tuple(named.split("/", 2)))
    return e.Parent(agent=agent, run=run, request=request)
