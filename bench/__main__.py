"""`make bench`: Waybook beside the bare JetStream figure, in alternating rounds, both sync modes (DESIGN 12)."""

import argparse
import asyncio
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from bench.bare import bare_messages_s
from bench.fold import measure as measure_fold
from bench.graphs import run as measure_graphs
from bench.walk import Field, WalkResult, field
from waybook.adapters.embedded import NatsServer, Postgres
from waybook.adapters.metrics.listening import listening
from waybook.adapters.metrics.walker import WalkerMetrics
from waybook.adapters.nats.command_queue import STREAM as COMMANDS
from waybook.engine.hooks import ignore
from waybook.events.subjects import state_stream
from waybook.services.bootstrap.runtime import settle_memory
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.projector.child import projector_child
from waybook.testing.servers import reachable_folder

RESULTS = Path(__file__).parent / "results" / "latest.json"
GOALS = {"sync_always": 2.0, "default_sync": 0.5, "single_p50_ms": 12.0, "fold_events_s": 200_000.0}


async def measure(sync_always: bool, options: argparse.Namespace) -> dict[str, Any]:
    """Alternating rounds on one nats-server; the median of each side."""
    folder = Path(tempfile.mkdtemp(prefix="waybook-bench-"))
    store = reachable_folder()
    nats, postgres = NatsServer(folder / "nats", sync_always=sync_always), Postgres(store / "postgres")
    try:
        await asyncio.gather(nats.start(), postgres.start())
        await ensure_topology(nats.url)
        nats.stage_batches_in_memory((state_stream(), COMMANDS))
        with listening(0) as opened:
            metrics, hook = (None, ignore) if options.no_metrics else (opened, WalkerMetrics())
            async with projector_child(nats.url, postgres.url, metrics=metrics):
                async with field(nats.url, postgres.url, slots=options.side_by_side, hook=hook) as waybook:
                    return await _rounds(waybook, nats.url, sync_always, options)
    finally:
        await asyncio.gather(nats.stop(), postgres.stop())
        shutil.rmtree(folder)
        shutil.rmtree(store)


async def _rounds(waybook: Field, url: str, sync_always: bool, options: argparse.Namespace) -> dict[str, Any]:
    walked: list[WalkResult] = []
    bare: list[float] = []
    await waybook.round(200)
    for _ in range(options.rounds):
        bare.append(await bare_messages_s(url, options.messages, options.side_by_side))
        walked.append(await waybook.round(options.messages))
    median = statistics.median(w.messages_s for w in walked)
    result: dict[str, Any] = {
        "waybook_messages_s": round(median, 1),
        "bare_messages_s": round(statistics.median(bare), 1),
        "ratio": round(median / statistics.median(bare), 2),
        "read_models_lag_s": round(max(w.lag_s for w in walked), 2),
        "waybook_rounds": [round(w.messages_s, 1) for w in walked],
        "bare_rounds": [round(b, 1) for b in bare],
    }
    if sync_always:
        result["single_p50_ms"] = round(statistics.median(await waybook.single_ms(100)), 2)
    return result


def main() -> None:
    """Prints a table and writes bench/results/latest.json."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side-by-side", type=int, default=64)
    parser.add_argument("--no-metrics", action="store_true", help="count nothing in walker and projector")
    parser.add_argument("--only", choices=["sync_always", "default_sync", "graphs"])
    options = parser.parse_args()
    results: dict[str, Any] = {"messages": options.messages, "side_by_side": options.side_by_side}
    settle_memory()
    for name, sync_always in (("sync_always", True), ("default_sync", False)):
        if options.only in (None, name):
            results[name] = _run(measure(sync_always, options))
    if "sync_always" in results:
        results["single_p50_ms"] = results["sync_always"].pop("single_p50_ms")
    if options.only in (None, "graphs"):
        results["graphs"] = measure_graphs()
    results["fold_events_s"] = round(measure_fold().fold_events_s)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    _print(results)


def _run(work: Any) -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def _print(results: dict[str, Any]) -> None:
    print(f"{'':<14}{'waybook/s':>11}{'bare/s':>9}{'ratio':>7}{'goal':>6}{'lag s':>7}")
    for name in ("sync_always", "default_sync"):
        if name in results:
            r = results[name]
            figures = f"{r['waybook_messages_s']:>11}{r['bare_messages_s']:>9}{r['ratio']:>7}"
            print(f"{name:<14}{figures}{GOALS[name]:>6}{r['read_models_lag_s']:>7}")
    if "single_p50_ms" in results:
        print(f"single message alone, p50: {results['single_p50_ms']} ms (goal {GOALS['single_p50_ms']:g})")
    print(f"fold, decoding included: {results['fold_events_s']:,} events/s (goal {GOALS['fold_events_s']:,.0f})")
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
