"""What an open run with nothing under way waits for: answers, inputs, preconditions."""

import msgspec

from waybook.engine.definition import FAILED, Definition, Step
from waybook.engine.dispatch import bind, limit_reached, missing_inputs
from waybook.engine.errors import text_of
from waybook.engine.run import Run, execution_key

ASKING = frozenset({"request", "delegation"})
"""Kinds of events that wait for an answer."""


class OpenRequest(msgspec.Struct, frozen=True):
    """A question that nobody answered yet: the event's name, which the answer's signal gives, and its type.

    `agent` is the agent that works on it, where it was handed to one, and `run` its run.
    """

    name: str
    event: str
    agent: str | None = None
    run: str | None = None


def open_requests(definition: Definition, run: Run) -> tuple[OpenRequest, ...]:
    """The requests of this walk that are not answered, oldest first."""
    asked = [p for t, kind in definition.kinds.items() if kind in ASKING for p in run.visible.get(t, ())]
    asked.sort(key=lambda p: p.ordinal)
    open_ones = [(p, run.children.get(p.name)) for p in asked if p.name not in run.answered]
    return tuple(
        OpenRequest(
            p.name, p.event, child.agent if child is not None else None, child.run if child is not None else None
        )
        for p, child in open_ones
    )


def is_asked(run: Run, request: str) -> bool:
    """Whether the event of that name, which is in the run's log, stands in this walk: a restart drops what it asks anew."""
    return any(published.name == request for published in run.visible.get(run.event(request).event, ()))


def knows_request(run: Run, request: str) -> bool:
    """Whether an event of that name is in the run's log, so that somebody may answer it."""
    return any(published.name == request for published in run.log)


def false_preconditions(definition: Definition, run: Run) -> dict[str, str]:
    """By step: the precondition that keeps it from running, and the last event about which it said no.

    Asked again with the run context as it is now, so it may say yes by now: nobody asked it since.
    """
    found: dict[str, str] = {}
    for name, gate in definition.gates.items():
        step = definition.steps[name]
        triggers = sorted((p for t in step.inputs for p in run.visible.get(t, ())), key=lambda p: -p.ordinal)
        for trigger in triggers:
            if bind(step, run, trigger) is None:
                continue
            if execution_key(run.walk, name, trigger.name) in run.executions:
                break
            try:
                answer = gate(run, trigger)
            except Exception as error:  # noqa: BLE001  whatever it raises is told
                found[name] = f"{_named(gate)} raised for {trigger.event} {trigger.name}: {text_of(error)}"
                break
            about = f"for {trigger.event} {trigger.name}"
            if not answer:
                found[name] = f"{_named(gate)} was false {about}"
                break
            if _was_held(run, step, trigger.name):
                again = " or ".join(sorted(step.inputs))
                found[name] = (
                    f"{_named(gate)} was false {about} when it came, and is now true; the next {again} asks it again"
                )
                break
    return found


def _was_held(run: Run, step: Step, trigger: str) -> bool:
    """Whether only its precondition can have kept a step from an event that it could bind."""
    is_offered = any(offer.step == step.name and offer.trigger == trigger for offer in run.offers.values())
    return not (is_offered or run.state == FAILED or run.taken_over is not None or limit_reached(step, run))


def _named(gate: object) -> str:
    return getattr(gate, "__name__", "its precondition")


def waits_for(definition: Definition, run: Run) -> tuple[str, str]:
    """A stable word and a text for people: what has to come before the run can move."""
    requests = open_requests(definition, run)
    people = [r for r in requests if r.agent is None]
    if people:
        return "answer", "waits for an answer to " + ", ".join(f"{r.event} {r.name}" for r in people)
    if requests:
        return "agent", "waits for " + ", ".join(f"agent {r.agent} on {r.name}" for r in requests)
    parts = [f"{step} waits for {' and '.join(types)}" for step, types in missing_inputs(definition, run).items()]
    parts += [f"{step}: {text}" for step, text in false_preconditions(definition, run).items()]
    parts = parts or [
        f"{step.name} was executed as often as it may be ({step.max_executions})"
        for step in definition.steps.values()
        if limit_reached(step, run)
    ]
    return "input", "; ".join(parts) or "no step has anything left to do, and no stop event was returned"
