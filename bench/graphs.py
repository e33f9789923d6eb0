"""Agents as graphs: `python -m bench.graphs`, or `make bench-graphs`. The best of several rounds of each figure.

- a graph of 100 steps that do nothing (10 wide, 10 deep), 16 runs side by side, sync always: step completions a second,
  beside LlamaIndex Workflows in memory and LangGraph with a durable saver (`make bench-peers` installs them)
- a run with 10,000 events: CPU time of the decision on one more result, and how long a cold one takes to load
- 100 results of one run at a time: how many commits hold them
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.long_run import LongRun
from bench.wide import PIECES, Splitting, graph
from waybook.adapters.embedded import NatsServer
from waybook.adapters.nats.command_queue import STREAM as COMMANDS
from waybook.agents.definition import define
from waybook.engine.ports import Outgoing
from waybook.events.codec import Codec
from waybook.events.command import Command, StartPayload
from waybook.events.engine import StepCompleted
from waybook.events.subjects import RunKey, command_subject, state_stream, state_subject
from waybook.services.bootstrap.runtime import settle_memory
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import Wiring, walker_ports, wired
from waybook.services.walker.walker import Walker, WalkerOptions

WIDE, DEEP, RUNS = 10, 10, 16
EVENTS = 10_000
GOALS = {"completions_s": 1_500.0, "warm_ms": 1.0, "cold_ms": 50.0, "appends": 5.0}
PEERS = Path(__file__).parent / "peers"
PEER_PYTHON = PEERS / ".venv" / "bin" / "python"
WITHIN_S = 120.0


class Bench:
    """A walker of both agents on a server of its own."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self._round = 0

    def _start(self, agent: str, event: str, fields: dict[str, Any], number: int) -> tuple[RunKey, Outgoing]:
        key = RunKey(f"b{self._round}", agent, f"r{number}")
        payload = StartPayload(event=event, body=msgspec.Raw(msgspec.json.encode(fields)))
        command = Command(
            id=f"start-{key}", verb="start", issued_at=self.wiring.clock.now(), actor="bench",
            payload=msgspec.Raw(msgspec.json.encode(payload)),
        )  # fmt: skip
        return key, Outgoing(command_subject(key, "start", issuer="cli"), msgspec.json.encode(command), command.id)

    async def _walked(self, starts: list[Outgoing]) -> float:
        """Seconds from the first start until every command is acknowledged: nothing of the runs is open then."""
        began = time.perf_counter()
        await self.wiring.commands.publish_many(starts)
        stream = self.wiring.connection.client.jetstream()
        async with asyncio.timeout(WITHIN_S):
            while (await stream.stream_info(COMMANDS)).state.messages:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.005)
        return time.perf_counter() - began

    async def completions_s(self, runs: int = RUNS) -> float:
        """Step completions a second of so many graphs side by side."""
        self._round += 1
        given = [self._start("graph", "Go", {}, number) for number in range(runs)]
        took = await self._walked([start for _, start in given])
        for key, _ in given:
            completed = sum(isinstance(e, StepCompleted) for e in await self.events(key))
            assert completed == WIDE * DEEP + 1, completed
        return runs * WIDE * DEEP / took

    async def appends(self) -> int:
        """How many commits hold the results of PIECES executions of one run that end together."""
        self._round += 1
        key, start = self._start("splitting", "Split", {"pieces": PIECES}, 0)
        await self._walked([start])
        held = 0
        results = 0
        async for record in self.wiring.state.history(state_subject(key)):
            commit = Codec().decode(record.payload, record.headers, record.subject)
            completed = sum(isinstance(e, StepCompleted) for e in commit.events)
            results += completed
            held += completed > 0
        assert results == PIECES + 2, results
        return held - 2  # the first is that of the step that split, the last ends the run

    async def events(self, key: RunKey) -> list[Any]:
        """All events of a run."""
        codec = Codec()
        history = self.wiring.state.history(state_subject(key))
        return [e async for r in history for e in codec.decode(r.payload, r.headers, r.subject).events]


@asynccontextmanager
async def opened() -> AsyncIterator[Bench]:
    """A walker in this process and a nats-server beside it, sync always."""
    folder = Path(tempfile.mkdtemp(prefix="waybook-bench-"))
    nats = NatsServer(folder / "nats", sync_always=True)
    try:
        await nats.start()
        await ensure_topology(nats.url)
        nats.stage_batches_in_memory((state_stream(), COMMANDS))
        async with walked_on(nats.url) as bench:
            yield bench
    finally:
        await nats.stop()
        shutil.rmtree(folder)


@asynccontextmanager
async def walked_on(nats_url: str) -> AsyncIterator[Bench]:
    """A walker in this process, on a server that has the streams."""
    async with wired(nats_url, name="bench") as wiring:
        async with walker_ports(wiring, nats_url, ack_wait_s=60.0, exclusive=True, on_lost=lambda: None) as ports:
            agents = [define(graph(WIDE, DEEP)), define(Splitting)]
            walker = Walker(agents, ports, options=WalkerOptions(slots=64, strict=True))
            work = asyncio.create_task(walker.run())
            try:
                yield Bench(wiring)
            finally:
                await walker.stop()
                await work


async def measure(rounds: int) -> dict[str, Any]:
    """The best of so many rounds of each."""
    async with opened() as bench:
        await bench.completions_s(2)
        completions = [await bench.completions_s() for _ in range(rounds)]
        appends = [await bench.appends() for _ in range(rounds)]
        long_run = LongRun(bench.wiring)
        warm = await long_run.grow(EVENTS)
        cold = [await long_run.cold_ms(snapshot=True) for _ in range(3 * rounds)]
        without = [await long_run.cold_ms(snapshot=False) for _ in range(rounds)]
    return {
        "completions_s": round(max(completions)),
        "rounds": [round(c) for c in completions],
        "appends": min(appends),
        "warm_ms": round(warm, 3),
        "cold_ms": round(min(cold), 1),
        "cold_without_snapshot_ms": round(min(without), 1),
    }


def peers(rounds: int) -> list[dict[str, Any]]:
    """The same graph elsewhere, where that is installed."""
    if not PEER_PYTHON.exists():
        print("peers skipped: `make bench-peers` installs LlamaIndex Workflows and LangGraph")
        return []
    found = []
    for script in sorted(PEERS.glob("*.py")):
        command = [str(PEER_PYTHON), str(script), *map(str, (RUNS, WIDE, DEEP, rounds))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            print(f"{script.name} skipped: {done.stderr.strip().splitlines()[-1:]}")
            continue
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def show(results: dict[str, Any], others: list[dict[str, Any]]) -> None:
    """Prints the figures and the ratios."""
    own = results["completions_s"]
    print(f"{RUNS} graphs of {WIDE} x {DEEP} steps side by side, each result durable, sync always:")
    print(f"  {'Waybook':<40}{own:>8,} completions/s (goal {GOALS['completions_s']:,.0f})")
    for other in others:
        rate = other["completions_s"]
        print(f"  {other['name']:<40}{rate:>8,.0f} completions/s, Waybook is {own / rate:.1f} times as fast")
    print(f"a run with {EVENTS:,} events: {results['warm_ms']} ms CPU a decision (goal {GOALS['warm_ms']:g}), ", end="")
    print(f"cold load {results['cold_ms']} ms (goal {GOALS['cold_ms']:g}), ", end="")
    print(f"without a snapshot {results['cold_without_snapshot_ms']} ms")
    print(f"{PIECES} results at a time: {results['appends']} commits (goal {GOALS['appends']:g} at most)")


def run(rounds: int = 5) -> dict[str, Any]:
    """Measures, prints, and returns the figures."""
    try:
        import uvloop
    except ImportError:
        results = asyncio.run(measure(rounds))
    else:
        results = uvloop.run(measure(rounds))
    others = peers(min(rounds, 3))
    show(results, others)
    return {**results, "peers": others}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="bench.graphs", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    settle_memory()
    run(parser.parse_args().rounds)
