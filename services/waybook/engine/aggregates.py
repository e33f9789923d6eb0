"""Decisions of system aggregates: state wider than one run, under the same commit protocol (DESIGN 4)."""

from collections.abc import Sequence

from waybook.engine.fold import apply, seal
from waybook.engine.inputs import Accepted, Decision, Nothing
from waybook.engine.run import Run
from waybook.events import engine as e
from waybook.events.subjects import RunKey


def decide_facts(key: RunKey, run: Run | None, facts: Sequence[e.EngineEvent], now: int) -> Decision:
    """One commit with those facts that the aggregate does not hold yet; no events when it holds them all."""
    new = tuple(f for f in facts if not (run is not None and _holds(run, f)))
    if not new:
        return Decision((), (Nothing("applied"),), (), run)
    after = run.copy() if run is not None else None
    version = (run.version if run is not None else 0) + 1
    for index, fact in enumerate(new):
        after = apply(after, fact, f"{version}.{index}", now, key)
    assert after is not None
    seal(after, version, now, "", ())
    return Decision(new, (Accepted(),), (), after)


def _holds(run: Run, fact: e.EngineEvent) -> bool:
    if isinstance(fact, e.ThreadJoined):
        return any(m["agent"] == fact.agent and m["run"] == fact.run for m in run.fields.get("members", ()))
    return False
