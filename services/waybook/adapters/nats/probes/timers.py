"""What waiting stands on: schedules in a work queue."""

from waybook.adapters.nats.probes.bench import TIMEOUT_S, Answer, Bench, guarded, verdict
from waybook.adapters.nats.probes.probe import Probe, Seen

_STREAM = "TIMERS"
_PAST = "@at 2020-01-01T00:00:00Z"
_FUTURE = "@at 2999-01-01T00:00:00Z"


async def _schedules(bench: Bench) -> Seen:
    fire = f"timer.fire.{bench.token()}.run"
    config = {"name": bench.token(), "durable_name": bench.token(), "filter_subject": fire, "ack_policy": "explicit"}
    body = {"stream_name": _STREAM, "config": config, "action": "create"}
    await bench.api(f"CONSUMER.CREATE.{_STREAM}.{bench.token()}.{fire}", body)
    subject = f"timer.arm.{bench.token()}.run"
    fired = [await _fires(bench, subject, fire), await _fires(bench, subject, fire)]
    purged = await _purged(bench, f"timer.arm.{bench.token()}.later", fire)
    recorded = await _cancelled_by_record(bench, f"timer.arm.{bench.token()}.guarded", fire)
    return Seen(f"{fired[0]}; armed again {fired[1]}; purged: {purged} left; cancelled by a record: {recorded} left")


async def _arm(bench: Bench, subject: str, fire: str, when: str) -> Answer:
    return await bench.publish(subject, {"Nats-Schedule": when, "Nats-Schedule-Target": fire, **guarded(0)})


async def _fires(bench: Bench, subject: str, fire: str) -> str:
    """Arms a timer that is due, takes the fire, acknowledges it."""
    armed = await _arm(bench, subject, fire, _PAST)
    async with bench.pulling(_STREAM, bench.token()) as puller:
        message = await puller.take()
        if message is None:
            return f"{verdict(armed)}, does not fire"
        await message.ack_sync(timeout=TIMEOUT_S)
    return f"{verdict(armed)}, fires, {await bench.messages(_STREAM)} left"


async def _purged(bench: Bench, subject: str, fire: str) -> int:
    await _arm(bench, subject, fire, _FUTURE)
    await bench.api(f"STREAM.PURGE.{_STREAM}", {"filter": subject})
    return await bench.messages(_STREAM)


async def _cancelled_by_record(bench: Bench, subject: str, fire: str) -> int:
    """The guarded way to cancel: a record elsewhere that purges the schedule."""
    armed = await _arm(bench, subject, fire, _FUTURE)
    headers = {
        "Nats-Scheduler": subject,
        "Nats-Schedule-Next": "purge",
        "Nats-Expected-Last-Subject-Sequence": str(armed.get("seq", 0)),
        "Nats-Expected-Last-Subject-Sequence-Subject": subject,
    }
    await bench.publish(f"timer.arm.{bench.token()}.record", headers)
    return await bench.messages(_STREAM)


PROBES = (
    Probe(
        "P16",
        "do schedules work in a work queue, and what does cancelling leave behind?",
        "stored, fires, 0 left; armed again stored, fires, 0 left; purged: 0 left; cancelled by a record: 1 left",
        _schedules,
    ),
)
