"""What the commit protocol stands on: conflicts, resends, and the leader's word on a successor."""

from waybook.adapters.nats.probes.bench import Bench, guarded, verdict, with_id
from waybook.adapters.nats.probes.probe import Probe, Seen


async def _conflict(bench: Bench) -> Seen:
    subject = bench.subject("run")
    first = await bench.append(subject, 0)
    before = await bench.last_sequence(bench.state)
    second = await bench.append(subject, 0)
    added = await bench.last_sequence(bench.state) - before
    named = f": {first['seq']}" in second.get("error", {}).get("description", "")
    return Seen(
        f"{verdict(first)}, then {verdict(second)}, last sequence {'named' if named else 'not named'}, {added} added"
    )


async def _resend(bench: Bench) -> Seen:
    answers = []
    for run, headers in (("with", with_id("resend", 0)), ("without", guarded(0))):
        subject = bench.subject(run)
        answers += [verdict(await bench.publish(subject, headers)), verdict(await bench.publish(subject, headers))]
    return Seen(f"with an id {answers[0]}, then {answers[1]}; without {answers[2]}, then {answers[3]}")


async def _successor(bench: Bench) -> Seen:
    subject, other = bench.subject("run"), bench.subject("other")
    first = (await bench.append(subject, 0))["seq"]
    await bench.append(other, 0)
    second = (await bench.append(subject, first))["seq"]
    third = (await bench.append(subject, second))["seq"]
    after_first = await _get(bench, {"seq": first + 1, "next_by_subj": subject})
    after_third = await _get(bench, {"seq": third + 1, "next_by_subj": subject})
    last = await _get(bench, {"last_by_subj": subject})
    names = {str(first): "1st", str(second): "2nd", str(third): "3rd"}
    seen = [names.get(answer, answer) for answer in (after_first, last, after_third)]
    return Seen("after the 1st: {}; last: {}; after the last: {}".format(*seen))


async def _get(bench: Bench, request: dict[str, object]) -> str:
    answer = await bench.api(f"STREAM.MSG.GET.{bench.state}", request)
    error = answer.get("error")
    return str(error["code"]) if error else str(answer["message"]["seq"])


PROBES = (
    Probe(
        "J0.3",
        "which code does a conflicting append get on a stream of one replica?",
        "stored, then 10071, last sequence named, 0 added",
        _conflict,
    ),
    Probe(
        "P12",
        "what answers a stored commit that is sent again with its old guard?",
        "with an id stored, then 10071; without stored, then 10071",
        _resend,
    ),
    Probe(
        "P15",
        "does the leader return exactly the commit that took a place?",
        "after the 1st: 2nd; last: 3rd; after the last: 404",
        _successor,
    ),
)
