"""What group commit stands on: a refused batch stores nothing, and what refuses it."""

from waybook.adapters.nats.probes.bench import Bench, guarded, verdict, with_id
from waybook.adapters.nats.probes.probe import Probe, Seen

_RUNS = ("a", "b", "c", "d")


async def _one_bad_guard(bench: Bench) -> Seen:
    await bench.append(bench.subject("c"), 0)
    before = await bench.last_sequence(bench.state)
    answer = await bench.batch([(bench.subject(run), with_id(f"{bench.token()}-{run}", 0)) for run in _RUNS])
    added = await bench.last_sequence(bench.state) - before
    named = bench.subject("c") in str(answer["error"]["description"]) if "error" in answer else False
    alone = [
        await bench.publish(bench.subject(run), with_id(f"{bench.token()}-{run}", 0)) for run in _RUNS if run != "c"
    ]
    gap = alone[0].get("seq", 0) - before - 1
    return Seen(
        f"{verdict(answer)}, {added} added, member {'named' if named else 'not named'}; "
        f"then singly {', '.join(verdict(one) for one in alone)}, gap {gap}"
    )


async def _stored_id(bench: Bench) -> Seen:
    await bench.publish(bench.subject("b"), with_id(f"{bench.token()}-b", 0))
    before = await bench.last_sequence(bench.state)
    with_ids = await bench.batch([(bench.subject(run), with_id(f"{bench.token()}-{run}", 0)) for run in _RUNS])
    without = await bench.batch([(bench.subject(run), guarded(0)) for run in _RUNS])
    added = await bench.last_sequence(bench.state) - before
    return Seen(f"with ids {verdict(with_ids)}, without {verdict(without)}, {added} added")


async def _twice_the_same_run(bench: Bench) -> Seen:
    before = await bench.last_sequence(bench.state)
    members = [
        (bench.subject("a"), guarded(0)),
        (bench.subject("b"), guarded(0)),
        (bench.subject("a"), guarded(before + 1)),
    ]
    answer = await bench.batch(members)
    return Seen(f"{verdict(answer)}, {await bench.last_sequence(bench.state) - before} added")


PROBES = (
    Probe(
        "P9",
        "what does one stale guard do to a batch, and to its innocents afterwards?",
        "10071, 0 added, member not named; then singly stored, stored, stored, gap 0",
        _one_bad_guard,
    ),
    Probe(
        "P10",
        "what does one stored message id do to a batch?",
        "with ids 10201, without 10071, 0 added",
        _stored_id,
    ),
    Probe("P11", "may a batch hold two guarded commits of one run?", "10164, 0 added", _twice_the_same_run),
)
