"""The bench's graph in LlamaIndex Workflows, in memory: steps a second. Runs in the peers' own environment."""

import asyncio
import json
import sys
import time
import types
from typing import Any

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent


def built(wide: int, deep: int) -> type[Workflow]:
    """A workflow of `wide` chains of `deep` steps that do nothing, and a step that collects their ends."""
    lines = [f"class E{c}_{d}(Event):\n    pass" for c in range(wide) for d in range(deep)]
    lines.append("class Graph(Workflow):")
    for c in range(wide):
        for d in range(deep):
            takes = "StartEvent" if d == 0 else f"E{c}_{d - 1}"
            lines.append(
                f"    @step\n    async def s{c}_{d}(self, ev: {takes}) -> E{c}_{d}:\n        return E{c}_{d}()"
            )
    ends = [f"E{c}_{deep - 1}" for c in range(wide)]
    lines.append(f"    @step\n    async def finish(self, ctx: Context, ev: {' | '.join(ends)}) -> StopEvent | None:")
    lines.append(f"        if ctx.collect_events(ev, [{', '.join(ends)}]) is None:\n            return None")
    lines.append("        return StopEvent()")
    module = types.ModuleType("llamaindex_graph")
    sys.modules[module.__name__] = module
    module.__dict__.update(
        {"Context": Context, "Workflow": Workflow, "step": step, "Event": Event, "StartEvent": StartEvent,
         "StopEvent": StopEvent}
    )  # fmt: skip
    exec("\n".join(lines), module.__dict__)  # noqa: S102 - the text above
    graph: type[Workflow] = module.__dict__["Graph"]
    return graph


async def main(runs: int, wide: int, deep: int, rounds: int) -> dict[str, Any]:
    """The best of several rounds."""
    workflow = built(wide, deep)(timeout=120)
    best = 0.0
    for _ in range(rounds):
        began = time.perf_counter()
        await asyncio.gather(*(workflow.run() for _ in range(runs)))
        best = max(best, runs * wide * deep / (time.perf_counter() - began))
    return {"name": "LlamaIndex Workflows, in memory", "completions_s": best}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*map(int, sys.argv[1:5])))))
