"""What the separation of TIMERS from STATE stands on: schedules take immutability away."""

from waybook.adapters.nats.probes.bench import Bench, verdict
from waybook.adapters.nats.probes.probe import Probe, Seen


async def _schedules(bench: Bench) -> Seen:
    config = {
        "name": "PROBE_SCHEDULES",
        "subjects": ["probe.schedules.>"],
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "deny_purge": True,
        "allow_msg_schedules": True,
    }
    refused = verdict(await bench.api("STREAM.CREATE.PROBE_SCHEDULES", {**config, "discard": "new"}))
    answer = await bench.api("STREAM.CREATE.PROBE_SCHEDULES", config)
    if "error" in answer:
        return Seen(f"refused {verdict(answer)}; with discard new {refused}")
    stored = answer["config"]
    await bench.api("STREAM.DELETE.PROBE_SCHEDULES")
    purge, rollup = (str(stored.get(name, False)).lower() for name in ("deny_purge", "allow_rollup_hdrs"))
    return Seen(f"stored with deny_purge {purge}, allow_rollup_hdrs {rollup}; with discard new {refused}")


PROBES = (
    Probe(
        "J0.7",
        "what becomes of deny_purge on a stream with schedules?",
        "stored with deny_purge false, allow_rollup_hdrs true; with discard new 10052",
        _schedules,
    ),
)
