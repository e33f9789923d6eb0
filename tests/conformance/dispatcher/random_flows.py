"""Workflows and publications by chance, as a case file would hold them."""

from random import Random
from typing import Any

import msgspec
from tests.conformance.cases import Case

PLAIN = ("A", "B", "C")
EVENTS: dict[str, dict[str, Any]] = {
    "Go": {"start": True, "fields": {}},
    **{name: {"external": True, "fields": {}} for name in PLAIN},
    "Done": {"stop": True, "fields": {}},
}
MOST_ROUNDS = 4
"""How often a step that returns something may run: what it returns may make it due again."""


def random_case(seed: int, *, stops: bool) -> Case:
    """A case of one to four steps and up to eight publications; only with `stops` may a run end."""
    chance = Random(f"flow {seed}")
    steps = [_step(f"s{i}", chance, first=i == 0, stops=stops) for i in range(chance.randint(1, 4))]
    publish = [{"event": "Go"}, *({"event": chance.choice(PLAIN)} for _ in range(chance.randint(0, 8)))]
    return Case(
        id=f"random-{seed}", format="dispatcher", expect={}, events=EVENTS, steps=steps, publish=publish,
        pace=chance.choice(("idle", "burst")),
    )  # fmt: skip


def with_a_kill(case: Case, seed: int) -> Case:
    """The case with one worker killed at some point of some step, and all processes replaced after each publication."""
    chance = Random(f"kill {seed}")
    point = chance.choice(("during_step", "after_commit_before_ack", "between_outputs"))
    armed = {"point": point, "step": chance.choice(case.steps)["name"], "execution": chance.randint(1, 3)}
    publish = [{"crash": armed}, *(item for given in case.publish for item in (given, {"restart": True}))]
    return msgspec.structs.replace(case, publish=publish, pace="idle")


def _step(name: str, chance: Random, *, first: bool, stops: bool) -> dict[str, Any]:
    groups = _groups(chance)
    parameters = [_parameter(f"p{i}", group, chance) for i, group in enumerate(groups)]
    if first:  # a run needs a step that takes its start
        parameters.append({"name": "go", "type": "Go", "kind": "required"})
    step: dict[str, Any] = {"name": name, "params": parameters, "returns": [], "emits": []}
    returned = chance.sample(PLAIN, chance.choice((0, 0, 1, 1, 2)))
    if returned:
        step["max_executions_per_run"] = chance.randint(1, MOST_ROUNDS)
        step["emits"] = [{"emit": r, "times": chance.randint(1, 2)} for r in returned]
    if stops and chance.random() < 0.3:
        returned = [*returned, "Done"]
        step["emits"] = [*step["emits"], {"emit": "Done"}]
    step["returns"] = returned
    _precondition(step, chance)
    return step


def _groups(chance: Random) -> list[str]:
    """Types for one to three parameters, each type once; two of them may make a union."""
    types = chance.sample(("Go", *PLAIN), chance.randint(1, 3))
    types = [t for t in types if t != "Go"] or ["A"]
    if len(types) > 1 and chance.random() < 0.25:
        return [f"{types[0]}|{types[1]}", *types[2:]]
    return types


def _parameter(name: str, types: str, chance: Random) -> dict[str, Any]:
    kind = chance.choice(("required", "required", "optional", "list", "fixed_list"))
    parameter: dict[str, Any] = {"name": name, "type": types, "kind": kind}
    if kind == "fixed_list":
        parameter["n"] = chance.randint(1, 3)
    if kind == "list" and chance.random() < 0.2:
        parameter["nullable"] = True
    return parameter


def _precondition(step: dict[str, Any], chance: Random) -> None:
    lists = [p for p in step["params"] if p["kind"] == "list" and not p.get("nullable")]
    optional = [p for p in step["params"] if p["kind"] == "optional"]
    if lists and chance.random() < 0.4:
        comparison = chance.choice(("== 2", ">= 2", "% 2 == 1"))
        step["precondition"] = {"name": "p", "params": [lists[0]], "expr": f"len({lists[0]['name']}) {comparison}"}
    elif optional and chance.random() < 0.4:
        step["precondition"] = {"name": "p", "params": [optional[0]], "expr": f"{optional[0]['name']} is not None"}
