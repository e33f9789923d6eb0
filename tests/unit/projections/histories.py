"""Histories to project: a plain walk through five steps, and commits made by hand."""

from collections.abc import Iterable, Iterator

import msgspec

from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey

STEPS = ("security_scan", "context_retrieval", "classify", "draft", "route")
STATES = ("security_check", "classifying", "classifying", "drafting", "drafting", "draft_ready")
BEGAN_AT = 1_700_000_000_000
CLAIM = e.Claim(1, 1, 1)


def key(number: int = 1, *, tenant: str = "default", agent: str = "inbox") -> RunKey:
    return RunKey(tenant, agent, f"run{number:06d}")


def commit(version: int, *events: e.EngineEvent, at: int | None = None, walk: int = 1) -> Commit:
    return Commit(
        version=version,
        walk=walk,
        at=BEGAN_AT + version if at is None else at,
        actor="walker",
        definition="d1",
        events=events,
    )


def started(state: str = "received", **members: object) -> tuple[e.EngineEvent, ...]:
    mail = {"from": "ann@example.org", "subject": "An invoice", "date": "2026-01-01", **members}
    return (
        e.RunStarted(agent="inbox", definition="d1", state=state, thread="t1"),
        e.EventPublished(event="MailReceived", schema=1, payload=msgspec.Raw(msgspec.json.encode(mail))),
    )


def moved(from_state: str, to_state: str, **fields: object) -> e.Transitioned:
    return e.Transitioned(row="r", from_state=from_state, to_state=to_state, on="Event", fields=fields)


def began(action: str, step: str = "draft", *, trigger: str = "1.1", attempt: int = 1, walk: int = 1) -> e.StepBegan:
    return e.StepBegan(
        action=action,
        step=step,
        trigger=trigger,
        attempt=attempt,
        walk=walk,
        bindings={"event": trigger},
        command="c1",
        claim=CLAIM,
        deadline=BEGAN_AT + 600_000,
    )


def completed(action: str, *outputs: int) -> e.StepCompleted:
    return e.StepCompleted(action=action, outputs=outputs, duration_ms=12, model="rules", usage=e.TokenUsage(10, 5, 15))


def failed(action: str, step: str = "draft", *, failures: int = 1, exhausted: bool = False) -> e.StepFailed:
    error = e.Failure(type="TimeoutError", text="no answer")
    return e.StepFailed(action=action, step=step, error=error, failures=failures, exhausted=exhausted, duration_ms=30)


def published(event: str, action: str, **members: object) -> e.EventPublished:
    payload = msgspec.Raw(msgspec.json.encode(members))
    return e.EventPublished(event=event, schema=1, payload=payload, action=action)


def walk(size: int = 100, at: int = BEGAN_AT) -> Iterator[Commit]:
    """The six commits of a message that passes five steps; `size` bytes in each result."""
    state, action = STATES[0], "1.3"
    first = (*started(), moved("received", state), began(action, STEPS[0]))
    yield commit(1, *first, at=at)
    for number in range(1, 6):
        version, following = number + 1, STATES[number]
        events: list[e.EngineEvent] = [completed(action, 1), published("Done", action, text="x" * size)]
        if following != state:
            events.append(moved(state, following, **{f"field_{number}": "y" * size}))
            state = following
        if number < 5:
            action = f"{version}.{len(events)}"
            events.append(began(action, STEPS[number], trigger=f"{version}.1"))
        yield commit(version, *events, at=at + number)


def interleaved(runs: Iterable[Iterable[Commit]], side_by_side: int = 64) -> Iterator[tuple[int, Commit]]:
    """The commits of many runs as they come to stand in a stream: (number of the run, commit)."""
    waiting = enumerate(runs)
    active: list[tuple[int, Iterator[Commit]]] = []
    while True:
        for number, run in waiting:
            active.append((number, iter(run)))
            if len(active) >= side_by_side:
                break
        if not active:
            return
        for entry in list(active):
            following = next(entry[1], None)
            if following is None:
                active.remove(entry)
            else:
                yield entry[0], following
