"""What the lease of a command stands on."""

from waybook.adapters.nats.probes.bench import TIMEOUT_S, Answer, Bench
from waybook.adapters.nats.probes.probe import Probe, Seen

_STREAM = "COMMANDS"


async def _recreated(bench: Bench) -> Seen:
    lane = await _lane(bench)
    await bench.publish(f"{lane}.start")
    async with bench.pulling(_STREAM, bench.token()) as puller:
        held = await puller.take()
    await bench.api(f"CONSUMER.DELETE.{_STREAM}.{bench.token()}")
    await _lane(bench)
    async with bench.pulling(_STREAM, bench.token()) as puller:
        again = await puller.take(expires_s=1.0)
    if held is None or again is None:
        return Seen("not delivered")
    same = held.metadata.sequence.stream == again.metadata.sequence.stream
    return Seen(f"{'the same command' if same else 'another'} at once, delivery {again.metadata.num_delivered}")


async def _until_acknowledged(bench: Bench) -> Seen:
    lane = await _lane(bench)
    sequence = (await bench.publish(f"{lane}.start"))["seq"]
    seen = [await _present(bench, sequence)]
    async with bench.pulling(_STREAM, bench.token()) as puller:
        message = await puller.take()
        seen.append(await _present(bench, sequence))
        if message is not None:
            await message.ack_sync(timeout=TIMEOUT_S)
        seen.append(await _present(bench, sequence))
    return Seen("waiting: {}; delivered: {}; acknowledged: {}".format(*seen))


async def _lane(bench: Bench) -> str:
    """A lane of the probe's own, with its durable consumer; returns the subject without its verb."""
    lane = f"cmd.new.{bench.token()}"
    config = {
        "durable_name": bench.token(),
        "name": bench.token(),
        "filter_subject": f"{lane}.>",
        "ack_policy": "explicit",
        "ack_wait": 60_000_000_000,
    }
    body = {"stream_name": _STREAM, "config": config, "action": "create"}
    await bench.api(f"CONSUMER.CREATE.{_STREAM}.{bench.token()}.{lane}.>", body)
    return f"{lane}.cli.probe.agent.run"


async def _present(bench: Bench, sequence: int) -> str:
    answer: Answer = await bench.api(f"STREAM.MSG.GET.{_STREAM}", {"seq": sequence})
    return str(answer["error"]["code"]) if "error" in answer else "present"


PROBES = (
    Probe(
        "P5",
        "does a recreated durable bring outstanding commands back?",
        "the same command at once, delivery 1",
        _recreated,
    ),
    Probe(
        "P6",
        "is a command readable by sequence exactly until it is acknowledged?",
        "waiting: present; delivered: present; acknowledged: 404",
        _until_acknowledged,
    ),
)
