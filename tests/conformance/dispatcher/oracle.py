"""The prefix rule a second time, by another hand: what a log of events alone makes due (dispatcher-spec.md, 5 to 9).

It sees nothing of the product but the log: which events were stored, in which order, and in which commit.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.conformance.dispatcher.workflow import Workflow

Bound = str | tuple[str, ...] | None


class Stored(NamedTuple):
    """An event of the log: its name there, its type, the version of its commit."""

    name: str
    type: str
    version: int


class Execution(NamedTuple):
    """What has to begin: a step for a trigger, with what its parameters get."""

    step: str
    trigger: str
    inputs: tuple[tuple[str, Bound], ...]


def due(flow: Workflow, log: Sequence[Stored]) -> list[Execution]:
    """All executions that a run has to begin that was not stopped, in the order of their triggers."""
    found: list[Execution] = []
    counts: Counter[str] = Counter()
    for position, trigger in enumerate(log):
        prefix = log[: position + 1]
        for step in flow.steps:
            if not any(trigger.type in types(p) for p in step["params"]):
                continue
            inputs = [(p["name"], bound(p, prefix, trigger)) for p in step["params"]]
            if any(value is MISSING for _, value in inputs) or not allows(step, dict(inputs)):
                continue
            limit = step.get("max_executions_per_run")
            if limit is not None and counts[step["name"]] >= limit:
                continue
            counts[step["name"]] += 1
            found.append(Execution(step["name"], trigger.name, tuple(inputs)))
    return found


MISSING: Any = object()


def types(parameter: dict[str, Any]) -> list[str]:
    return str(parameter["type"]).split("|")


def bound(parameter: dict[str, Any], prefix: Sequence[Stored], trigger: Stored) -> Bound:
    """What a parameter gets; MISSING when the step cannot run."""
    fitting = [event for event in prefix if event.type in types(parameter)]
    kind = parameter["kind"]
    if kind in ("required", "optional"):
        if trigger in fitting:
            return trigger.name
        return fitting[-1].name if fitting else (None if kind == "optional" else MISSING)
    names = tuple(event.name for event in fitting)
    if kind == "fixed_list":
        return names if len(names) == parameter["n"] else MISSING
    return names or (None if parameter.get("nullable") else MISSING)


def allows(step: dict[str, Any], inputs: dict[str, Bound]) -> bool:
    """What the step's precondition says; its expressions are built from `len(...)` and `is not None`."""
    asked = step.get("precondition")
    if asked is None:
        return True
    known = {p["name"]: inputs[p["name"]] for p in asked["params"]}
    return bool(eval(asked["expr"], {"__builtins__": {}, "len": len}, known))
