"""The bench's graph in LangGraph with a durable saver on SQLite: steps a second. Runs in the peers' own environment."""

import asyncio
import json
import operator
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """How many steps are done."""

    done: Annotated[int, operator.add]


async def work(state: State) -> dict[str, int]:
    """A step that does nothing."""
    return {"done": 1}


def built(wide: int, deep: int) -> StateGraph[Any]:
    """A graph of `wide` chains of `deep` nodes, joined by one."""
    graph: StateGraph[Any] = StateGraph(State)
    graph.add_node("finish", work)
    for c in range(wide):
        for d in range(deep):
            graph.add_node(f"s{c}_{d}", work)
            graph.add_edge(START if d == 0 else f"s{c}_{d - 1}", f"s{c}_{d}")
    graph.add_edge([f"s{c}_{deep - 1}" for c in range(wide)], "finish")
    graph.add_edge("finish", END)
    return graph


async def main(runs: int, wide: int, deep: int, rounds: int) -> dict[str, Any]:
    """The best of several rounds; every result is stored before the next step begins (durability "sync")."""
    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            async with AsyncSqliteSaver.from_conn_string(str(Path(folder) / f"{number}.db")) as saver:
                app = built(wide, deep).compile(checkpointer=saver)
                began = time.perf_counter()
                done = await asyncio.gather(
                    *(
                        app.ainvoke(
                            {"done": 0},
                            {"configurable": {"thread_id": str(run)}, "recursion_limit": 10 * deep},
                            durability="sync",
                        )
                        for run in range(runs)
                    )
                )
                best = max(best, runs * wide * deep / (time.perf_counter() - began))
                assert all(state["done"] == wide * deep + 1 for state in done)
    return {"name": "LangGraph on SQLite, durability sync", "completions_s": best}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*map(int, sys.argv[1:5])))))
