"""Kills an agent's process at every boundary in turn and checks that nothing is lost and nothing happens twice."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from waybook.agents import Agent
from waybook.agents.definition import define
from waybook.agents.effects import EffectAdapter
from waybook.engine.run import Run
from waybook.events.typed import StartEvent
from waybook.testing.faults import Boundary
from waybook.testing.history import completed, illegalities
from waybook.testing.kit.disturbance import CALM, Disturbance
from waybook.testing.kit.other_side import OtherSide
from waybook.testing.kit.report import Report, Violation
from waybook.testing.kit.say import Say
from waybook.testing.kit.walk import Place, Plan, Stuck, Walk

UNHARMED: frozenset[Boundary] = frozenset({"history.before", "tail.before", "trace.before"})
"""Boundaries at which a death differs in nothing from one a moment sooner or later: reads, and what may get lost."""


class _Undisturbed(msgspec.Struct, frozen=True):
    """How the run ends when nothing is disturbed; all other walks have to end the same way."""

    state: str
    outcome: str | None
    executions: Counter[str]
    arrived: Counter[str]


class _Tried(NamedTuple):
    """What was wrong with a walk. `held`: it waits for a person, who has to say whether a side effect happened."""

    wrong: list[str]
    held: bool = False


class CrashKit:
    """Walks the first of `agents` from `start`, says what `then` holds whenever it rests, and kills it on the way.

    Everything is in memory, on a clock that the kit moves: leases lapse and timers fire without waiting. `provides`
    makes what the steps ask for, anew for each process, since a new process has an empty memory. `effects` makes the
    adapters of side effects, anew for each walk: they are the world outside, which survives a process; use `OtherSide`
    to have the kit count what arrives there. `thread` is the token of the run's thread. A walk that is under way for
    `within_s` seconds of real time is stuck.

    What is checked of each walk (DESIGN 2): the history is legal, nothing finished ran again, the run rests in the
    same state after the same executions as an undisturbed one, no command is left, and every side effect that
    arrives undisturbed arrived exactly once. Where the other side cannot tell whether a side effect happened, a run
    that is held for a person is right, too: `Report.held` counts them.

    A step that is a plain function runs in a thread, which nobody can kill in-process: it goes on, and its result is
    thrown away.
    """

    def __init__(
        self,
        agents: Sequence[type[Agent]],
        *,
        start: StartEvent,
        then: Sequence[Say] = (),
        thread: str | None = None,
        provides: Callable[[], Mapping[type, Any]] = dict,
        effects: Callable[[], Mapping[str, EffectAdapter]] = dict,
        within_s: float = 10.0,
    ) -> None:
        """Raises DefinitionError for an agent that cannot be run."""
        self._plan = Plan([define(agent) for agent in agents], start, then, thread, provides, effects, within_s)

    def check(self, *disturbances: Disturbance) -> Report:
        """Walks once for every boundary and every disturbance (none: deliveries come once and in order).

        Raises Stuck when the undisturbed walk does not come to rest, DefinitionError for something not provided.
        """
        return asyncio.run(self.acheck(*disturbances))

    async def acheck(self, *disturbances: Disturbance) -> Report:
        """As `check`, on a loop that runs already."""
        walk = Walk(self._plan, None, CALM)
        run = await walk.go()
        calm = _undisturbed(walk, run)
        texts = (*self._illegal(walk, ended=not _held(run)), *walk.world.refusals())
        found = [Violation("undisturbed", text) for text in texts]
        places = _places(walk.passed)
        tried = [
            (place, disturbance, await self._try(place, disturbance, calm))
            for disturbance in disturbances or (CALM,)
            for place in places
        ]
        for place, disturbance, one in tried:
            name = f"killed at {place}" + ("" if disturbance is CALM else f", {disturbance}")
            found += [Violation(name, text) for text in one.wrong]
        return Report(
            walks=1 + len(tried),
            boundaries=tuple(str(place) for place in places),
            violations=tuple(found),
            state=calm.state,
            held=_held(run) + sum(one.held for _, _, one in tried),
        )

    async def _try(self, place: Place, disturbance: Disturbance, calm: _Undisturbed) -> _Tried:
        walk = Walk(self._plan, place, disturbance)
        try:
            run = await walk.go()
        except Stuck as stuck:
            return _Tried([str(stuck)])
        except Exception as error:  # noqa: BLE001  whatever broke a walker is what the check is for
            return _Tried([f"the walker broke: {error!r}"])
        if not walk.killed and disturbance is CALM:
            return _Tried(["this place was not reached; the agent does not do the same every time"])
        held = _held(run)
        differences = [] if held else _differences(calm, _undisturbed(walk, run))
        return _Tried([*self._illegal(walk, ended=not held), *differences], held)

    def _illegal(self, walk: Walk, *, ended: bool = True) -> list[str]:
        table = self._plan.agents[0].engine.table
        texts = illegalities(table, walk.world.history(), ended=ended)
        texts += [f"{key} arrived {n} times at {name}" for name, key, n in _arrivals(walk) if n > 1]
        return texts + [f"still in COMMANDS: {subject}" for subject in walk.world.queue.waiting.values()]


def _held(run: Run | None) -> bool:
    """Whether a person has to say whether a side effect happened."""
    return run is not None and any(operation.outcome == "unknown" for operation in run.operations.values())


def _places(passed: Sequence[tuple[Boundary, str]]) -> list[Place]:
    seen: Counter[tuple[Boundary, str]] = Counter()
    places = []
    for boundary, where in passed:
        seen[boundary, where] += 1
        if boundary not in UNHARMED:
            places.append(Place(boundary, where, seen[boundary, where]))
    return places


def _undisturbed(walk: Walk, run: Run | None) -> _Undisturbed:
    steps = Counter(execution.split(":")[1] for execution in completed(walk.world.history()))
    arrived: Counter[str] = Counter()
    for name, _, n in _arrivals(walk):
        arrived[name] += n
    return _Undisturbed(
        state=run.state if run is not None else "not begun",
        outcome=run.outcome if run is not None else None,
        executions=steps,
        arrived=arrived,
    )


def _arrivals(walk: Walk) -> list[tuple[str, str, int]]:
    sides = [(name, side) for name, side in walk.effects.items() if isinstance(side, OtherSide)]
    return [(name, key, n) for name, side in sides for key, n in side.arrived.items()]


def _differences(calm: _Undisturbed, now: _Undisturbed) -> list[str]:
    texts = []
    for field in _Undisturbed.__struct_fields__:
        wanted, found = getattr(calm, field), getattr(now, field)
        if wanted != found:
            texts.append(f"{field}: {_shown(found)}, undisturbed it is {_shown(wanted)}")
    return texts


def _shown(value: object) -> str:
    return str(dict(value)) if isinstance(value, Counter) else str(value)
