"""The agents of the graph bench: a graph of many steps that do nothing, and one with many results at a time."""

import asyncio
import linecache
import sys
import types
from typing import Annotated

import waybook.agents as wa
from waybook.agents import Agent, Event, Exactly, StartEvent, StopEvent, step

PIECES = 100


def graph(wide: int, deep: int) -> type[Agent]:
    """An agent of `wide` chains of `deep` steps, and a step that joins their ends; written out as its author would."""
    lines = ["class Go(wa.StartEvent):", "    pass", "class Joined(wa.StopEvent):", "    pass"]
    lines += [f"class E{c}_{d}(wa.Event):\n    pass" for c in range(wide) for d in range(deep)]
    lines += ["class Graph(wa.Agent):", "    name = 'graph'"]
    for c in range(wide):
        for d in range(deep):
            takes = "Go" if d == 0 else f"E{c}_{d - 1}"
            lines += ["    @wa.step", f"    async def s{c}_{d}(self, event: {takes}) -> E{c}_{d}:"]
            lines += [f"        return E{c}_{d}()"]
    ends = ", ".join(f"e{c}: E{c}_{deep - 1}" for c in range(wide))
    lines += ["    @wa.step", f"    async def finish(self, {ends}) -> Joined:", "        return Joined()"]
    source, name = "\n".join(lines) + "\n", "waybook_bench_graph"
    module = types.ModuleType(name)
    module.__file__ = f"/{name}.py"
    module.__dict__["wa"] = wa
    sys.modules[name] = module
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(keepends=True), module.__file__)
    exec(compile(source, module.__file__, "exec"), module.__dict__)  # noqa: S102 - the text above
    agent: type[Agent] = module.__dict__["Graph"]
    return agent


class Split(StartEvent, frozen=True, kw_only=True):
    """How many pieces to make."""

    pieces: int


class Piece(Event, frozen=True, kw_only=True):
    """One of them."""

    number: int


class Done(Event, frozen=True, kw_only=True):
    """What became of it."""

    number: int


class AllDone(StopEvent, frozen=True, kw_only=True):
    """All pieces are done."""


class Splitting(Agent):
    """Many executions of one step, whose results come at the same time."""

    name = "splitting"

    @step
    async def split(self, go: Split) -> list[Piece]:
        return [Piece(number=number) for number in range(go.pieces)]

    @step
    async def work(self, piece: Piece) -> Done:
        await asyncio.sleep(0.1)  # what makes them come together
        return Done(number=piece.number)

    @step
    async def finish(self, done: Annotated[list[Done], Exactly(PIECES)]) -> AllDone:
        return AllDone()
