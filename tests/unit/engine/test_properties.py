"""Properties of fold and decide, over random plays on several definitions."""

import os
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.unit.engine.definitions import ALL
from tests.unit.engine.history import CODEC, History, canonical, output
from tests.unit.engine.laws import check
from tests.unit.engine.plays import Draw, draws, meaning, play, plays, start_event, world_of

from waybook.engine.decide import commit_of
from waybook.engine.definition import FAILED
from waybook.engine.fold import fold_all
from waybook.engine.hold import hold, why
from waybook.engine.inputs import Accepted, Completed, Decision, Delivered, Input, Outcome, Retry, Start
from waybook.engine.run import Run
from waybook.events import engine as e

THOROUGH = int(os.environ.get("WAYBOOK_EXAMPLES", "0"))
"""Set it to let Hypothesis look at that many other examples."""

lightly = settings(
    max_examples=THOROUGH or 40,
    derandomize=not THOROUGH,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
every_definition = pytest.mark.parametrize("agent", list(ALL))


@every_definition
@lightly
@given(moves=plays(moves=40))
def test_every_history_obeys_the_laws(agent: str, moves: list[Draw]) -> None:
    """No illegal edge, nothing after the end, nothing begun in `failed`, no execution completed twice."""
    history = History(ALL[agent])
    play(history, moves)
    check(history)


@every_definition
@lightly
@given(moves=plays())
def test_every_prefix_folds_to_the_run_that_was_there(agent: str, moves: list[Draw]) -> None:
    """Fold from nothing, fold from any point on, and the live path give the same bytes."""
    history = History(ALL[agent])
    seen: list[bytes] = []
    for draw in moves:
        play(history, [draw])
        if len(history.stored) > len(seen):
            seen.append(canonical(history.run))
    for count in range(1, len(seen) + 1):
        run = history.refold(count)
        assert canonical(run) == seen[count - 1]
        assert run is not None
        assert canonical(fold_all(run, history.stored[count:], key=history.key)) == seen[-1]
        assert canonical(run) == seen[count - 1], "fold changed its argument"


@every_definition
@lightly
@given(moves=plays())
def test_a_run_survives_a_snapshot(agent: str, moves: list[Draw]) -> None:
    """A run goes through JSON and back unchanged, and folds on from there."""
    history = History(ALL[agent])
    play(history, moves)
    for count in range(1, len(history.stored) + 1):
        run = history.refold(count)
        restored = msgspec.json.decode(msgspec.json.encode(run), type=Run)
        assert canonical(restored) == canonical(run)
        assert canonical(fold_all(restored, history.stored[count:], key=history.key)) == canonical(history.run)


@every_definition
@lightly
@given(moves=plays())
def test_every_commit_survives_the_codec(agent: str, moves: list[Draw]) -> None:
    """A stored commit encodes to the bytes that it was decoded from."""
    history = History(ALL[agent])
    play(history, moves)
    for commit, _, _ in history.stored:
        assert CODEC.encode(CODEC.decode(CODEC.encode(commit))) == CODEC.encode(commit)


@every_definition
@lightly
@given(moves=plays(), last=draws())
def test_what_is_refused_or_finds_nothing_leaves_no_event(agent: str, moves: list[Draw], last: Draw) -> None:
    """An input is accepted exactly when it has events."""
    history = History(ALL[agent])
    play(history, moves)
    one = meaning(history, last)
    if one is None:
        return
    decision = history.decide(one, world=world_of(history, last))
    assert isinstance(decision.outcomes[0], Accepted) == bool(decision.events)
    assert bool(decision.commands) <= bool(decision.events)


@every_definition
@lightly
@given(moves=plays(moves=15), batch=st.lists(draws(slots=False), min_size=2, max_size=5))
def test_inputs_decided_together_come_out_as_one_after_the_other(
    agent: str, moves: list[Draw], batch: list[Draw]
) -> None:
    """Merging what waits into one commit changes neither the events nor the outcomes nor the run."""
    history = History(ALL[agent])
    play(history, moves)
    world = world_of(history, batch[0])
    drawn = [_walked_here(history, one) for draw in batch if (one := meaning(history, draw)) is not None]
    inputs = [one for one in drawn if not _is_versioned(one)]
    together = history.decide(*inputs, world=world)
    apart = History(ALL[agent])
    play(apart, moves)
    outcomes = tuple(apart.apply(one, world=world)[0] for one in inputs)
    assert list(map(_without_names, together.outcomes)) == list(map(_without_names, outcomes))
    if together.events:
        history.store(together)
    assert flattened(history) == flattened(apart)
    assert canonical(hold(history.definition, history.it)) == canonical(hold(apart.definition, apart.it))


def _walked_here(history: History, one: Input) -> Input:
    """One process decides both ways, so it knows of every redelivery that it walks the command already."""
    if not isinstance(one, Delivered) or history.run is None:
        return one
    claims = [a.claim for a in history.run.open_actions() if a.command == one.command.id]
    return msgspec.structs.replace(one, held=max(claims, default=None))


def _is_versioned(one: Input) -> bool:
    command = getattr(one, "command", None)
    return command is not None and command.if_version is not None


def _without_names(outcome: Outcome) -> Any:
    """Outcomes up to the text, which may name an event."""
    return (type(outcome), getattr(outcome, "reason", None))


def flattened(history: History) -> list[bytes]:
    """All events of a history with every name replaced by the event's place in it, whatever commit holds it."""
    places: dict[str, str] = {}
    total = 0
    for commit, _, _ in history.stored:
        for index in range(len(commit.events)):
            places[f"{commit.version}.{index}"] = f"#{total}"
            total += 1
    return [
        canonical(_renamed(_relative(event, index), places))
        for commit, _, _ in history.stored
        for index, event in enumerate(commit.events)
    ]


def _relative(event: e.EngineEvent, index: int) -> Any:
    plain = msgspec.json.decode(msgspec.json.encode(event))
    if isinstance(event, e.StepCompleted):
        plain["outputs"] = [o - index for o in event.outputs]
    return plain


def _renamed(value: Any, places: dict[str, str]) -> Any:
    if isinstance(value, str):
        prefix, _, rest = value.rpartition(":")
        return f"{prefix}:{places.get(rest, rest)}" if prefix else places.get(value, value)
    if isinstance(value, dict):
        return {k: _renamed(v, places) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(v, places) for v in value]
    return value


@every_definition
@lightly
@given(moves=plays())
def test_a_command_that_was_applied_is_not_applied_again(agent: str, moves: list[Draw]) -> None:
    """A later delivery publishes nothing; it has events only while actions of a smaller claim are open under it."""
    history = History(ALL[agent])
    play(history, moves)
    run = history.run
    for id, delivered in history.delivered.items():
        if run is None or id not in run.applied:
            continue
        later = msgspec.structs.replace(delivered, claim=e.Claim(delivered.claim.sequence, 9, 9))
        decision = history.decide(later)
        opened = [a for a in run.open_actions() if a.command == id]
        assert not any(isinstance(event, e.EventPublished) for event in decision.events)
        assert bool(decision.events) == bool(opened)
        assert {a.id for a in opened} == {a for event in decision.events if (a := _old_action(event, run)) is not None}


def _old_action(event: e.EngineEvent, run: Run) -> str | None:
    """The open action that an event of a take-over ends."""
    if isinstance(event, e.ActionAbandoned):
        return event.action
    if isinstance(event, e.StepBegan):
        return run.executions[f"{event.walk}:{event.step}:{event.trigger}"]
    return None


@every_definition
@lightly
@given(moves=plays(), pick=st.integers(0, 9))
def test_a_retry_publishes_nothing_and_keeps_what_is_completed(agent: str, moves: list[Draw], pick: int) -> None:
    """It repeats transitions, reuses completed executions, and begins only what has no result yet."""
    history = History(ALL[agent])
    play(history, [*moves, Draw("fail", pick, 1)])
    run = history.run
    if run is None or run.state != FAILED:
        return
    timers = [None, *run.timers]
    decision = history.decide(history.command(Retry(timers[pick % len(timers)])))
    assert not any(isinstance(event, e.EventPublished) for event in decision.events)
    done = {a.execution for a in run.actions.values() if a.status == "completed"}
    for event in decision.events:
        if isinstance(event, e.StepBegan | e.StepOffered):
            assert f"{event.walk}:{event.step}:{event.trigger}" not in done
    reused = {event.action for event in decision.events if isinstance(event, e.StepReused)}
    assert reused in (set(), {a.id for a in run.actions.values() if a.status == "completed" and a.walk == run.walk})


@every_definition
@lightly
@given(moves=plays())
def test_an_open_run_always_says_what_it_waits_for(agent: str, moves: list[Draw]) -> None:
    """`why` answers for every state, and a run without a hold is under way or only lacks inputs."""
    history = History(ALL[agent])
    play(history, moves)
    for count in range(1, len(history.stored) + 1):
        run = history.refold(count)
        assert run is not None
        answer = why(history.definition, run)
        assert answer.next_move
        if run.state == FAILED:
            assert answer.hold.kind in ("retry", "waiting", "dead command", "reconciling")
            assert answer.hold.until is not None or answer.hold.kind != "retry"


@every_definition
@lightly
@given(
    choices=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=60), sizes=st.lists(st.integers(1, 4))
)
def test_executions_are_those_of_the_prefix_rule(agent: str, choices: list[tuple[int, int]], sizes: list[int]) -> None:
    """Whatever order results come in, and however they are merged, what began follows from the log alone."""
    history = History(ALL[agent])
    history.apply(history.command(Start(output(start_event(history)))))
    waiting: list[Input] = []
    sizes = [*sizes, 1]
    for a, b in choices:
        one = meaning(history, Draw("complete" if a % 3 else "signal", a, b))
        if one is None or any(isinstance(w, Completed) and w.action == getattr(one, "action", "") for w in waiting):
            continue
        waiting.append(one)
        if len(waiting) >= sizes[0]:
            history.apply(*waiting)
            waiting, sizes = [], (sizes[1:] or [1])
    assume(not history.it.ended and history.it.state != FAILED and not _ever_failed(history))
    assert _executions(history.it) == _expected(history)


def _ever_failed(history: History) -> bool:
    return FAILED in history.visited()


def _executions(run: Run) -> set[tuple[str, str, bytes]]:
    return {(a.step, a.trigger, canonical(a.bindings)) for a in run.actions.values()}


def _expected(history: History) -> set[tuple[str, str, bytes]]:
    """The specification's cycle, written down once more: every event, every step that takes it, the log up to it."""
    found: set[tuple[str, str, bytes]] = set()
    log = history.it.log
    for index, trigger in enumerate(log):
        for step in history.definition.steps.values():
            if trigger.event not in step.inputs:
                continue
            if step.max_executions is not None and sum(s == step.name for s, _, _ in found) >= step.max_executions:
                continue
            bindings: dict[str, Any] = {}
            for parameter in step.parameters:
                fitting = [p.name for p in log[: index + 1] if p.event in parameter.types]
                if (parameter.kind == "list" and fitting) or (
                    parameter.kind == "fixed_list" and len(fitting) == parameter.size
                ):
                    bindings[parameter.name] = tuple(fitting)
                elif parameter.kind in ("required", "optional") and fitting:
                    bindings[parameter.name] = fitting[-1]
                elif parameter.kind == "optional":
                    bindings[parameter.name] = None
            if len(bindings) == len(step.parameters):
                found.add((step.name, trigger.name, canonical(bindings)))
    return found


def test_a_decision_names_the_commit_that_stores_it() -> None:
    """commit_of takes version, walk, time and commands from the decision."""
    history = History(ALL["chain"])
    decision: Decision = history.decide(history.command(Start(output("Go")), id="k"))
    commit = commit_of(decision, history.definition, "w1")
    assert (commit.version, commit.walk, commit.at, commit.actor) == (1, 1, history.now, "w1")
    assert (commit.commands, commit.definition) == (("k",), "d1")
