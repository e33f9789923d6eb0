"""The keys of `expect`, each a reader that says what is different."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from tests.conformance.dispatcher.labels import Labels
from tests.conformance.dispatcher.world import THREAD, World
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.history import History

from waybook.engine.hold import why
from waybook.engine.run import execution_key
from waybook.events import engine as e
from waybook.events.subjects import RunKey


class Seen(msgspec.Struct):
    """A run as it is compared."""

    world: World
    name: str
    key: RunKey
    history: History
    labels: Labels
    thread: History
    children: dict[str, int]


Reader = Callable[[Seen, Any], Iterator[str]]
READERS: dict[str, Reader] = {}


def reads(name: str) -> Callable[[Reader], Reader]:
    def keep(function: Reader) -> Reader:
        READERS[name] = function
        return function

    return keep


async def look(world: World, run: str) -> Seen:
    """The run `run` of the case as it stands."""
    key = world.key_of(run)
    history = await world.history(key)
    ignored = frozenset(s["name"] for s in world.case.steps if s.get("stop_on_error") is False)
    thread = await world.history(RunKey(key.tenant, "@thread", THREAD))
    children = {
        name: sum(k.agent == definition.engine.agent for k in world.traffic.runs)
        for name, definition in world.definitions.items()
    }
    return Seen(world, run, key, history, Labels.of(history, ignored), thread, children)


async def check(world: World, expect: dict[str, Any], run: str) -> list[tuple[str, str]]:
    """What differs, by key."""
    found: list[tuple[str, str]] = []
    seen = await look(world, run)
    for key, wanted in expect.items():
        if key in ("definition", "order"):
            continue
        if key == "runs":
            for name, inner in wanted.items():
                found += [(f"runs {name} {k}", text) for k, text in await check(world, inner, name)]
            continue
        if key not in READERS:
            raise Unsupported(f"`expect`: {key}")
        found += [(key, text) for text in READERS[key](seen, wanted)]
    if expect.get("order") == "exact":
        ordered = list(_executions(seen))
        if ordered != [_as_pair(x) for x in expect["executions"]]:
            found.append(("order", f"executions came as {ordered}"))
    return found


def _began(seen: Seen) -> list[e.StepBegan]:
    """The first attempt at each execution, in order."""
    first: dict[str, e.StepBegan] = {}
    for event in seen.history.events(e.StepBegan):
        first.setdefault(execution_key(event.walk, event.step, event.trigger), event)
    return list(first.values())


def _executions(seen: Seen) -> list[tuple[str, dict[str, Any]]]:
    return [(x.step, seen.labels.bound(x.bindings)) for x in _began(seen)]


def _as_pair(wanted: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return wanted["step"], wanted["inputs"]


def _differs(what: str, wanted: Any, found: Any) -> Iterator[str]:
    if wanted != found:
        yield f"{what} expected {wanted!r}, is {found!r}"


def _in_range(what: str, wanted: Any, found: int) -> Iterator[str]:
    low, high = wanted if isinstance(wanted, list) else (wanted, wanted)
    if not low <= found <= high:
        yield f"{what} expected {wanted}, is {found}"


@reads("executions")
def executions(seen: Seen, wanted: list[dict[str, Any]]) -> Iterator[str]:
    expected = sorted(map(repr, map(_as_pair, wanted)))
    yield from _differs("executions:", expected, sorted(map(repr, _executions(seen))))


@reads("counts")
def counts(seen: Seen, wanted: dict[str, Any]) -> Iterator[str]:
    found = Counter(x.step for x in _began(seen))
    for step, number in wanted.items():
        yield from _in_range(step, number, found[step])


@reads("event_counts")
def event_counts(seen: Seen, wanted: dict[str, Any]) -> Iterator[str]:
    found = Counter(p.event for p in seen.history.events(e.EventPublished))
    for name, number in wanted.items():
        yield from _in_range(name, number, found[name])


@reads("log")
def log(seen: Seen, wanted: list[str]) -> Iterator[str]:
    yield from _differs("log:", wanted, seen.labels.log)


def _payload(seen: Seen, name: str) -> dict[str, Any]:
    """The fields of an event; what another agent answered stands among them."""
    assert seen.history.run is not None
    payload: dict[str, Any] = msgspec.json.decode(seen.history.run.event(name).payload)
    fields = payload.get("fields")
    return {**fields, **payload} if isinstance(fields, dict) else payload


def _same(seen: Seen, wanted: Any, found: Any) -> bool:
    if isinstance(wanted, str) and wanted in seen.labels.names:
        return bool(found == seen.labels.names[wanted])
    return type(wanted) is type(found) and bool(wanted == found)


@reads("emitted")
def emitted(seen: Seen, wanted: dict[str, dict[str, Any]]) -> Iterator[str]:
    for label, fields in wanted.items():
        if label not in seen.labels.names:
            yield f"there is no {label}"
            continue
        payload = _payload(seen, seen.labels.names[label])
        for name, value in fields.items():
            if not _same(seen, value, payload.get(name)):
                yield f"{label}.{name} expected {value!r}, is {payload.get(name)!r}"


def _values(seen: Seen, field: str) -> list[Any]:
    event, _, name = field.partition(".")
    found = [_payload(seen, n).get(name) for label, n in seen.labels.names.items() if label.partition("#")[0] == event]
    return sorted(found, key=repr)


@reads("field_sets")
def field_sets(seen: Seen, wanted: dict[str, list[Any]]) -> Iterator[str]:
    for field, values in wanted.items():
        yield from _differs(field, sorted(values, key=repr), _values(seen, field))


@reads("field_multiset_any_of")
def field_multiset_any_of(seen: Seen, wanted: dict[str, list[list[Any]]]) -> Iterator[str]:
    for field, choices in wanted.items():
        if _values(seen, field) not in [sorted(c, key=repr) for c in choices]:
            yield f"{field} expected one of {choices}, is {_values(seen, field)}"


@reads("stop")
def stop(seen: Seen, wanted: dict[str, Any] | None) -> Iterator[str]:
    run = seen.history.run
    result = run.result if run is not None and run.outcome == "completed" else None
    if wanted is None or result is None:
        yield from _differs("stop:", wanted, result)
        return
    assert run is not None
    yield from _differs("stop:", wanted["event"], run.event(result).event)
    for name, value in wanted.get("fields", {}).items():
        if not _same(seen, value, _payload(seen, result).get(name)):
            yield f"stop {name} expected {value!r}, is {_payload(seen, result).get(name)!r}"


@reads("run_state")
def run_state(seen: Seen, wanted: str) -> Iterator[str]:
    run = seen.history.run
    found = "unknown" if run is None else run.outcome or ("failed" if run.state == "failed" else "open")
    yield from _differs("run_state", wanted, found)


@reads("discarded")
def discarded(seen: Seen, wanted: list[dict[str, Any]]) -> Iterator[str]:
    found = [
        {"event": event, "reason": "run_finished"}
        for note in seen.world.notes_of(seen.key)
        if note.get("code") == "late_event_discarded"
        for event in note["events"]
    ]
    yield from _differs("discarded:", sorted(map(repr, wanted)), sorted(map(repr, found)))


@reads("rejected")
def rejected(seen: Seen, wanted: list[dict[str, Any]]) -> Iterator[str]:
    yield from _differs("rejected:", wanted, seen.world.rejected.get(seen.key.run, []))


@reads("diagnostics")
def diagnostics(seen: Seen, wanted: list[str]) -> Iterator[str]:
    found = {note.get("code") for note in seen.world.notes_of(seen.key)}
    if "already_applied" in found:  # a command that came again: its event is there, its executions have begun
        found |= {"duplicate_event_ignored", "duplicate_execution_skipped"}
    for code in wanted:
        if code not in found:
            yield f"no {code} among {sorted(map(str, found))}"


@reads("error")
def error(seen: Seen, wanted: dict[str, Any]) -> Iterator[str]:
    step, text = _last_error(seen)
    yield from _differs("error step:", wanted.get("step"), step)
    for word in wanted.get("mentions", []):
        if word not in text:
            yield f"the error does not mention {word!r}: {text}"


def _last_error(seen: Seen) -> tuple[str | None, str]:
    found: tuple[str | None, str] = (None, "")
    for entry in seen.history.entries():
        event = entry.event
        if isinstance(event, e.StepFailed | e.PreconditionFailed):
            found = (event.step, event.error.text)
        elif isinstance(event, e.RunEnded) and event.outcome == "failed":
            found = (None, event.reason or "")
    return found


@reads("body_runs")
def body_runs(seen: Seen, wanted: dict[str, list[int]]) -> Iterator[str]:
    for step, number in wanted.items():
        yield from _in_range(step, number, seen.world.bodies.runs[seen.key, step])


@reads("commits")
def commits(seen: Seen, wanted: dict[str, int]) -> Iterator[str]:
    steps = {x.action: x.step for x in seen.history.events(e.StepBegan)}
    found = Counter(steps[x.action] for x in seen.history.events(e.StepCompleted))
    for step, number in wanted.items():
        yield from _in_range(step, number, found[step])


@reads("overlap")
def overlap(seen: Seen, wanted: list[str]) -> Iterator[str]:
    if not seen.world.bodies.overlapped:
        yield f"{wanted} never ran at the same time"


@reads("cleanups")
def cleanups(seen: Seen, wanted: int) -> Iterator[str]:
    yield from _in_range("cleanups", wanted, len(seen.history.events(e.RunEnded)))


@reads("agent_instances")
def agent_instances(seen: Seen, wanted: int) -> Iterator[str]:
    yield from _in_range("agent objects", wanted, len(seen.world.built["Workflow"].instances))


@reads("run_context")
@reads("run_context_after")
def run_context(seen: Seen, wanted: dict[str, Any]) -> Iterator[str]:
    yield from _differs("run context", wanted, dict(seen.history.run.context) if seen.history.run is not None else None)


@reads("thread_context")
def thread_context(seen: Seen, wanted: dict[str, Any]) -> Iterator[str]:
    yield from _differs("thread context", wanted, dict(seen.thread.run.context) if seen.thread.run is not None else {})


@reads("waiting_for")
def waiting_for(seen: Seen, wanted: list[str]) -> Iterator[str]:
    assert seen.history.run is not None
    told = why(seen.world.definitions["Workflow"].engine, seen.history.run)
    yield from _differs("waits for", wanted, [seen.labels.labels[r.name] for r in told.requests])


@reads("display")
def display(seen: Seen, wanted: list[str]) -> Iterator[str]:
    shown = [note["event"] for note in seen.world.notes_of(seen.key) if note.get("kind") == "display"]
    yield from _differs("display:", wanted, shown)


@reads("offered")
def offered(seen: Seen, wanted: dict[str, Any]) -> Iterator[str]:
    found = Counter(x.step for x in seen.history.events(e.StepOffered))
    for step, number in wanted.items():
        yield from _in_range(f"offered {step}", number, found[step])


@reads("child_runs")
def child_runs(seen: Seen, wanted: dict[str, Any]) -> Iterator[str]:
    for name, number in wanted.items():
        yield from _in_range(f"runs of {name}", number, seen.children.get(name, 0))
