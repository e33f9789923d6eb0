"""Random plays on one run: numbers are drawn first, and what they mean is found when the run is known."""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st
from tests.unit.engine.history import History, output

from waybook.engine.inputs import (
    Cancel,
    Completed,
    Continue,
    Delivered,
    Exec,
    Failed,
    Input,
    Move,
    Output,
    Released,
    Retry,
    Signal,
    Start,
    World,
)
from waybook.engine.intents import Compensate, Intend, Park, Renew, Settle
from waybook.events import engine as e

KINDS = {
    "complete": 12, "fail": 3, "give_up": 1, "late": 1, "signal": 4, "start": 1, "again": 2, "again_here": 1,
    "same_delivery": 1, "retry": 2, "fire": 3, "stale_fire": 1, "continue": 1, "exec": 2, "release": 1, "move": 1,
    "cancel": 0, "guarded": 1, "intend": 4, "settle": 3, "park": 2, "word": 1, "compensate": 1, "renew": 1,
}  # fmt: skip


class Draw(msgspec.Struct, frozen=True):
    """One move before it is known what it applies to. `free` are the worker's slots, `gone`: commands are lost."""

    kind: str
    a: int
    b: int
    free: int = 32
    gone: bool = False
    late_ms: int = 0


WEIGHTED = [kind for kind, weight in KINDS.items() for _ in range(weight)]
LATER = (0, 0, 1_000, 400_000)
SLOTS = (32, 32, 32, 1, 0)


def draws(*, slots: bool = True) -> st.SearchStrategy[Draw]:
    """One number each, taken apart: much quicker to draw than six."""
    return st.integers(0, 2**26 - 1).map(lambda number: _taken_apart(number, slots=slots))


def _taken_apart(number: int, *, slots: bool) -> Draw:
    parts = []
    for size in (len(WEIGHTED), 12, 12, len(SLOTS), 2, len(LATER)):
        number, part = divmod(number, size)
        parts.append(part)
    kind, a, b, free, gone, later = parts
    return Draw(WEIGHTED[kind], a, b, SLOTS[free] if slots else 32, bool(gone), LATER[later])


def plays(*, moves: int = 25) -> st.SearchStrategy[list[Draw]]:
    return st.lists(draws(), min_size=1, max_size=moves)


def world_of(history: History, draw: Draw) -> World:
    opened = history.run.open_actions() if history.run is not None else []
    gone = frozenset(a.claim.sequence for a in opened) if draw.gone else frozenset()
    return World(free_slots=draw.free, gone=gone, facts={"kill_switch": draw.b % 2 == 0})


def meaning(history: History, draw: Draw) -> Input | None:
    """The input that a draw stands for now; None when there is nothing that it could speak of."""
    if history.run is None:
        return history.command(Start(output(start_event(history))))
    return _MEANINGS[draw.kind](history, draw)


def start_event(history: History) -> str:
    return next(name for name, kind in history.definition.kinds.items() if kind == "start")


def _pick(things: Any, number: int) -> Any:
    every = list(things)
    return every[number % len(every)] if every else None


def _running(history: History, draw: Draw) -> Any:
    return _pick((a for a in history.it.open_actions() if a.status == "running"), draw.a)


def results(history: History, step: str, number: int) -> tuple[Output, ...]:
    """What a step's body might return: nothing, one event, or two."""
    gives = sorted(history.definition.steps[step].outputs)
    if not gives or number == 0:
        return ()
    first = output(gives[number % len(gives)], mark=number)
    if number % 4 == 3:
        return (first, output(gives[(number + 1) % len(gives)], mark=number + 1))
    return (first,)


def _complete(history: History, draw: Draw) -> Input | None:
    action = _running(history, draw)
    return Completed(action.id, results(history, action.step, draw.b)) if action is not None else None


def _late(history: History, draw: Draw) -> Input | None:
    action = _pick((a for a in history.it.actions.values() if a.status != "running"), draw.a)
    return Completed(action.id, results(history, action.step, draw.b)) if action is not None else None


def _fail(history: History, draw: Draw) -> Input | None:
    action = _running(history, draw)
    if action is None:
        return None
    error = e.Failure("Boom", "went wrong", retryable=draw.kind == "fail")
    return Failed(action.id, error, not_before=history.now + 700_000 if draw.b == 0 else None)


def _signal(history: History, draw: Draw) -> Input | None:
    external = _pick((n for n, kind in history.definition.kinds.items() if kind == "external"), draw.a)
    if external is None:
        return None
    request = "q" if draw.b == 1 else None
    return history.command(Signal(output(external, reason="said"), request), person=draw.b % 2 == 0)


def _again(history: History, draw: Draw) -> Input | None:
    """A later delivery of a command given before: to another process, or to the one that walks it."""
    before = _pick(history.delivered.values(), draw.a)
    if before is None:
        return None
    held = before.claim if draw.kind == "again_here" else None
    claim = msgspec.structs.replace(before.claim, delivery=before.claim.delivery + 1)
    return msgspec.structs.replace(before, claim=claim, held=held)  # type: ignore[no-any-return]


def _same(history: History, draw: Draw) -> Input | None:
    return _pick(history.delivered.values(), draw.a)  # type: ignore[no-any-return]


def _fire(history: History, draw: Draw) -> Input | None:
    timer = _pick(history.it.timers, draw.a)
    return history.command(Retry(timer)) if timer is not None else None


def _stale_fire(history: History, draw: Draw) -> Input | None:
    return history.command(Retry(_pick(history.it.resolved, draw.a) or "99.0"))


def _exec(history: History, draw: Draw) -> Input | None:
    offer = _pick(history.it.offers.values(), draw.a)
    return history.command(Exec(offer.step, offer.trigger) if offer is not None else Exec("nobody", "1.1"))


def _release(history: History, draw: Draw) -> Input | None:
    running = [a.id for a in history.it.open_actions() if a.status == "running"]
    return Released(tuple(running[: 1 + draw.a])) if running else None


def _guarded(history: History, draw: Draw) -> Input | None:
    """A command for one version of the run only, or one that has expired."""
    if draw.a % 2:
        return history.command(Continue(), if_version=history.it.version - draw.b % 3)
    return history.command(Cancel("late"), expires_at=history.now - 1)


def _intend(history: History, draw: Draw) -> Input | None:
    """A body, often a superseded one, makes one of two side effects, by ordinal or by a key of its own."""
    action = _pick(history.it.actions.values(), draw.a)
    if action is None:
        return None
    key = "own" if draw.b % 3 == 0 else None
    return Intend(action.id, "mail", f"d{draw.b % 2}", {"text": draw.b % 2}, ordinal=draw.b % 2, key=key)


def _settle(history: History, draw: Draw) -> Input | None:
    operation = _pick(history.it.operations.values(), draw.a)
    if operation is None:
        return None
    outcome = _pick(("succeeded", "failed", "unknown", "absent"), draw.b)
    intent = operation.intended_as if draw.b < 8 else "1.99"
    if draw.kind == "settle":
        return Settle(operation.intent.key, outcome, "call", intent=intent, ask_again=draw.b != 2)
    person = draw.a % 2 == 0
    return history.command(Settle(operation.intent.key, outcome, "person" if person else "find"), person=person)


def _renew(history: History, draw: Draw) -> Input | None:
    key = _pick(history.it.operations, draw.a)
    return history.command(Renew(key)) if key is not None else None


def _park(history: History, draw: Draw) -> Input | None:
    action, key = _running(history, draw), _pick(history.it.operations, draw.b)
    if action is None or key is None:
        return None
    return Park(action.id, key, history.now + 60_000 if draw.b % 2 else None)


_MEANINGS: dict[str, Callable[[History, Draw], Input | None]] = {
    "complete": _complete,
    "late": _late,
    "fail": _fail,
    "give_up": _fail,
    "signal": _signal,
    "start": lambda h, d: h.command(Start(output(start_event(h)), content="other" if d.a else None)),
    "again": _again,
    "again_here": _again,
    "same_delivery": _same,
    "retry": lambda h, d: h.command(Retry()),
    "fire": _fire,
    "stale_fire": _stale_fire,
    "continue": lambda h, d: h.command(Continue()),
    "exec": _exec,
    "release": _release,
    "move": lambda h, d: h.command(Move(_pick(sorted(h.definition.table.states), d.a + d.b))),
    "cancel": lambda h, d: h.command(Cancel("enough")),
    "guarded": _guarded,
    "intend": _intend,
    "settle": _settle,
    "park": _park,
    "compensate": lambda h, d: h.command(Compensate()),
    "renew": _renew,
    "word": _settle,
}


def play(history: History, moves: list[Draw]) -> None:
    """Applies the moves one after the other; the same delivery is never given twice under one claim but by `same`."""
    for draw in moves:
        history.now += draw.late_ms
        one = meaning(history, draw)
        if one is not None:
            history.apply(one, world=world_of(history, draw))


def is_command(one: Input) -> bool:
    return isinstance(one, Delivered)
