"""Time and periodic jobs (advance, advance_to, tick), and workers (workers, supersede, rebuild_from_log)."""

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.backends import LEASE_MS
from tests.conformance.pipeline.verbs import Action, verb
from tests.conformance.pipeline.verbs_send import pass_and_fire, reconcile_approved
from tests.conformance.pipeline.world import World

from waybook.engine.retry import next_due


@verb("advance", "seconds")
async def advance(world: World, action: Action) -> None:
    """Moves the clock; what falls due happens, and leases run out."""
    await pass_and_fire(world, round(float(action["seconds"]) * 1000))


@verb("advance_to", "seconds")
async def advance_to(world: World, action: Action) -> None:
    """Moves the clock to so many seconds after the case began."""
    ms = world.began_ms + round(float(action["seconds"]) * 1000) - world.clock.now()
    if ms < 0:
        raise Unsupported(f"`advance_to`: the clock already stands beyond {action['seconds']} s")
    await pass_and_fire(world, ms)


@verb("tick", "job", "concurrent")
async def tick(world: World, action: Action) -> None:
    """One pass of a periodic job, or several at once."""
    if action["job"] == "retry_failed":
        await _retry_failed(world, int(action.get("concurrent") or 1))
    elif action["job"] == "reconcile_approved" and "concurrent" not in action:
        await reconcile_approved(world)
    elif action["job"] not in ("sweep_stuck", "adjust_thresholds") or "concurrent" in action:
        raise Unsupported(f"`tick`: the job {action['job']} is not interpreted yet")
    await world.settle()


async def _retry_failed(world: World, passes: int) -> None:
    """The next point of the five-minute grid: the retries that are due by then."""
    world.resets = True
    await world.pass_time(next_due(world.clock.now(), world.definition.engine.retry_grid_ms) - world.clock.now())
    await world.settle()
    await world.scheduling.fire("retry", passes=passes)


@verb("workers", "count")
async def workers(world: World, action: Action) -> None:
    """From here on so many workers take commands."""
    world.wanted_workers = int(action["count"])
    await world.lay_off()
    world.staff()
    await world.settle()


@verb("supersede")
async def supersede(world: World, action: Action) -> None:
    """The worker of the last running step stops, its lease runs out, another one takes the command over."""
    standing = world.gate.waiting()
    if not standing:
        raise Unsupported("`supersede`: no step is running")
    world.worker_of(standing[-1]).stop()
    world.staff()
    await world.pass_time(LEASE_MS)
    await world.settle()


@verb("rebuild_from_log")
async def rebuild_from_log(world: World, action: Action) -> None:
    """New processes with empty memories load the runs from their histories."""
    for worker in world.workers:
        worker.kill()
    world.staff()
    for message in world.messages.values():
        message.hand_over = message.stored
    await world.settle()
