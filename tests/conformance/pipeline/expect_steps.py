"""What must hold of answers, of steps, and of their rows."""

from collections import Counter
from typing import Any

from tests.conformance.pipeline import history as h
from tests.conformance.pipeline.compare import Differences, differences, outcome_differences, rows_differences, show
from tests.conformance.pipeline.expect import reads
from tests.conformance.pipeline.names import to_case
from tests.conformance.pipeline.override import as_input
from tests.conformance.pipeline.people import Pending
from tests.conformance.pipeline.world import Outcome, World

from waybook.events import engine as e


def _outcomes(world: World) -> list[Outcome]:
    heard = world.outcomes[world.mark.outcomes :]
    return [o.look() if isinstance(o, Pending) else o for o in heard]


@reads("outcomes")
async def _outcomes_in_order(world: World, value: Any) -> Differences:
    heard = _outcomes(world)
    if len(heard) != len(value):
        return [f"{len(heard)} answers {show(heard)}, expected {len(value)}"]
    pairs = zip(value, heard, strict=True)
    return [d for i, (w, o) in enumerate(pairs) for d in outcome_differences(w, o, f"no. {i + 1}")]


@reads("outcomes_last")
async def _outcomes_last(world: World, value: Any) -> Differences:
    heard = _outcomes(world)
    return outcome_differences(value, heard[-1]) if heard else ["there was no answer"]


@reads("all_outcomes")
async def _all_outcomes(world: World, value: Any) -> Differences:
    heard = _outcomes(world)
    if not heard:
        return ["there was no answer"]
    return [d for i, o in enumerate(heard) for d in outcome_differences(value, o, f"no. {i + 1}")]


@reads("outcomes_by_pair")
async def _outcomes_by_pair(world: World, value: Any) -> Differences:
    by_pair: dict[str, dict[str, str]] = {}
    for outcome in world.matrix:
        by_pair.setdefault(outcome["from"], {})[outcome["to"]] = _word(outcome)
    return differences(value, by_pair)


@reads("counts")
async def _counts(world: World, value: Any) -> Differences:
    counts = Counter(_word(outcome) for outcome in world.matrix)
    return differences(value, {**dict.fromkeys(value, 0), **counts})


def _word(outcome: Outcome) -> str:
    return "ok" if outcome.get("ok") else str(outcome.get("reason"))


@reads("action_rows")
async def _action_rows(world: World, value: Any) -> Differences:
    return rows_differences(value, await world.rows(), "kind", "row")


@reads("all_action_rows")
async def _all_action_rows(world: World, value: Any) -> Differences:
    rows = await world.rows()
    if not rows:
        return ["there is no row"]
    return [d for row in rows for d in differences(value, row, where=row["kind"])]


@reads("every_action_row_has")
async def _every_action_row_has(world: World, value: Any) -> Differences:
    rows = await world.rows()
    if not rows:
        return ["there is no row"]
    return [f"{row['kind']} has no {key}" for row in rows for key in value if row.get(key) is None]


@reads("action_rows_created")
async def _action_rows_created(world: World, value: Any) -> Differences:
    return differences(value, await world.begun_since_mark())


@reads("running_rows")
async def _running_rows(world: World, value: Any) -> Differences:
    return differences(value, sum(row["status"] == "running" for row in await world.rows()))


@reads("action_rows_by_order")
async def _action_rows_by_order(world: World, value: Any) -> Differences:
    return differences(value, h.in_order(await _begun(world)))


async def _begun(world: World) -> list[tuple[int, str]]:
    return [b for history in await world.histories() for b in h.begun(history, world.since(history))]


@reads("first_step_after")
async def _first_step_after(world: World, value: Any) -> Differences:
    begun = sorted(await _begun(world), key=lambda pair: pair[0])
    return differences(value, begun[0][1] if begun else None)


@reads("runs")
async def _runs(world: World, value: Any) -> Differences:
    counts = Counter(body.step for body in world.gate.works[world.mark.works :])
    return differences(value, {**dict.fromkeys(value, 0), **counts})


@reads("runs_max")
async def _runs_max(world: World, value: Any) -> Differences:
    counts = Counter(body.step for body in world.gate.works[world.mark.works :])
    return [f"{kind} ran {counts[kind]} times, at most {most}" for kind, most in value.items() if counts[kind] > most]


@reads("completed")
async def _completed(world: World, value: Any) -> Differences:
    ended = [k for history in await world.histories() for k in h.completed(history, world.since(history))]
    return differences(value, {**dict.fromkeys(value, 0), **Counter(ended)})


@reads("failure_counts")
async def _failure_counts(world: World, value: Any) -> Differences:
    run = (await world.history(world.message().key)).run
    return differences(value, {**dict.fromkeys(value, 0), **(run.failures if run is not None else {})})


@reads("bindings_kept")
async def _bindings_kept(world: World, value: Any) -> Differences:
    kept = all(h.bindings_kept(history) for history in await world.histories())
    return differences(value, kept)


@reads("next_step")
async def _next_step(world: World, value: Any) -> Differences:
    """The step that was named as next: begun by a commit, or offered, and not run yet."""
    named = await _named(world)
    if isinstance(value, dict):
        found = differences(value["kind"], named[0] if named is not None else None, where="kind")
        if not found and named is not None and "input_includes" in value:
            found = differences(value["input_includes"], named[1], where="input")
        return found
    return differences(value, named[0] if named is not None else None)


async def _named(world: World) -> tuple[str, dict[str, Any]] | None:
    for history in reversed(await world.histories()):
        ended = {x.action for x in (*history.events(e.StepCompleted), *history.events(e.StepFailed))}
        worked = {body.action for body in world.gate.works if body.run == history.key}
        for event in reversed(list(history.entries(world.since(history)))):
            step = event.event
            if isinstance(step, e.StepBegan) and step.action not in ended | worked:
                return step.step, _inputs(world, history, step.bindings)
            if isinstance(step, e.StepOffered):
                return step.step, _inputs(world, history, step.bindings)
    return None


def _inputs(world: World, history: h.History, bindings: e.Bindings) -> dict[str, Any]:
    """What a step would be given: the parts of the events that fill its parameters."""
    assert history.run is not None
    found: dict[str, Any] = {}
    for bound in bindings.values():
        for name in (bound,) if isinstance(bound, str) else bound or ():
            published = history.run.event(name)
            value = world.definition.decode(published.event, published.schema, published.payload)
            found.update(to_case(as_input(value)))
    return found
