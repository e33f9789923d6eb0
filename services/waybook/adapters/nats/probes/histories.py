"""What loading a run stands on: one literal subject, read by batch direct get."""

import statistics
import time

from waybook.adapters.nats.probes.bench import Bench
from waybook.adapters.nats.probes.probe import Probe, Seen

_STREAM = "PROBE_HISTORY"
_RUNS = 4_000
_BATCH = 500
_COMMITS = 6
_ROUNDS = 15


async def _history(bench: Bench) -> Seen:
    await _fill(bench)
    sequences, end = await bench.history(_STREAM, "probe.literal.run")
    nothing, empty_end = await bench.history(_STREAM, "probe.literal.nobody")
    pages = await bench.history(_STREAM, "probe.literal.run", page=_COMMITS - 2)
    literal = await _median_ms(bench, "probe.literal.run")
    wildcard = await _median_ms(bench, "probe.wildcard.run.>")
    await bench.api(f"STREAM.DELETE.{_STREAM}")
    ordered = sequences == sorted(set(sequences))
    return Seen(
        f"{len(sequences)} of {_COMMITS} {'in order' if ordered else 'out of order'}, end {end}; "
        f"a page of {len(pages[0])}, end {pages[1]}; nobody: {len(nothing)}, end {empty_end}",
        f"among {2 * _RUNS} subjects literal {literal:.2f} ms, wildcard {wildcard:.2f} ms, ratio {wildcard / literal:.1f}",
    )


async def _fill(bench: Bench) -> None:
    """A run's commits among those of many others: the same once on one literal subject, once on one for each event."""
    config = {
        "name": _STREAM,
        "subjects": ["probe.literal.>", "probe.wildcard.>"],
        "storage": "file",
        "num_replicas": 1,
    }
    await bench.api(f"STREAM.CREATE.{_STREAM}", {**config, "allow_direct": True, "allow_atomic": True})
    others = [
        f"probe.{kind}.r{number}{tail}"
        for number in range(_RUNS)
        for kind, tail in (("literal", ""), ("wildcard", ".e"))
    ]
    share = len(others) // _COMMITS
    for commit in range(_COMMITS):
        part = others[commit * share : (commit + 1) * share if commit < _COMMITS - 1 else None]
        subjects = ["probe.literal.run", f"probe.wildcard.run.e{commit}", *part]
        for start in range(0, len(subjects), _BATCH):
            await bench.batch([(subject, {}) for subject in subjects[start : start + _BATCH]])


async def _median_ms(bench: Bench, pattern: str) -> float:
    times = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        await bench.history(_STREAM, pattern)
        times.append((time.perf_counter() - begun) * 1_000)
    return statistics.median(times)


PROBES = (
    Probe(
        "J0.9",
        "does batch direct get return a literal subject's whole history?",
        "6 of 6 in order, end 204 EOB; a page of 4, end 204 EOB; nobody: 0, end 404 Message Not Found",
        _history,
    ),
)
