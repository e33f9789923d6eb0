"""The items of `publish`, one function each."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from tests.conformance.dispatcher.labels import Labels
from tests.conformance.dispatcher.traffic import CrashPoint
from tests.conformance.dispatcher.world import MAIN, THREAD, World
from tests.conformance.errors import Unsupported

from waybook.engine.run import execution_key
from waybook.events import engine as e
from waybook.events.command import SignalPayload, StartPayload

Item = dict[str, Any]
Verb = Callable[[World, Item], Awaitable[None]]
VERBS: dict[str, Verb] = {}


def verb(name: str) -> Callable[[Verb], Verb]:
    def keep(function: Verb) -> Verb:
        VERBS[name] = function
        return function

    return keep


async def perform(world: World, item: Item) -> None:
    """Carries out one item. Raises Unsupported for one that is not known."""
    name = next((n for n in VERBS if n in item), None)
    if name is None:
        raise Unsupported(f"`publish`: {sorted(item)}")
    await VERBS[name](world, item)


@verb("event")
async def event(world: World, item: Item) -> None:
    name, flow = item["event"], world.flows[MAIN]
    cls = world.built[MAIN].classes[name]
    fields, request = await _fields(world, item.get("fields", {}))
    body = msgspec.Raw(msgspec.json.encode(msgspec.convert(fields, cls)))
    if flow.events[name].get("start"):
        if world.run not in world.runs:
            world.runs.append(world.run)
        configuration = {**world.stored_config, **({"never_given": "no number"} if flow.config_invalid else {})}
        deadline = round(world.deadline_s * 1000) if world.deadline_s is not None else None
        payload: Any = StartPayload(
            event=name, body=body, thread=THREAD, configuration=configuration, deadline_ms=deadline
        )
        await world.give(world.key, "start", payload, event=name)
        return
    if world.run not in world.runs:
        world.runs.append(world.run)
    await world.give(world.key, "signal", SignalPayload(event=name, body=body, request=request), event=name)


async def _fields(world: World, given: Item) -> tuple[Item, str | None]:
    """Field values, labels replaced by the events' names; `request` is what the event answers."""
    if not any(isinstance(v, str) and "#" in v for v in given.values()):
        return dict(given), None
    labels = Labels.of(await world.history(world.key))
    fields = {n: labels.names.get(v, v) if isinstance(v, str) else v for n, v in given.items()}
    return fields, fields.get("request")


@verb("run")
async def run(world: World, item: Item) -> None:
    world.run = item["run"]


@verb("hold")
async def hold(world: World, item: Item) -> None:
    world.bodies.held.add(item["hold"])


@verb("release")
async def release(world: World, item: Item) -> None:
    world.bodies.release(item["release"])


@verb("redeliver")
async def redeliver(world: World, item: Item) -> None:
    """The command that caused the event comes again, beyond the duplicate window."""
    history = await world.history(world.key)
    labels = Labels.of(history)
    assert history.run is not None
    published = history.run.event(labels.names[item["redeliver"]])
    command = _cause(history, published)
    given = next((g for g in world.given if g.command == command), None)
    if given is None:
        raise Unsupported(f"`redeliver`: {item['redeliver']} was not caused by a publication")
    for _ in range(int(item.get("times", 1))):
        await world.repeat(given)
        await world.settle()


def _cause(history: Any, published: Any) -> str:
    """The command under which an event was stored."""
    if published.action is not None:
        return str(history.run.actions[published.action].command)
    version = int(published.name.partition(".")[0])
    return str(history.commits[version - 1][0].commands[0])


@verb("resend")
async def resend(world: World, item: Item) -> None:
    """The producer sends the same event once more, with the same id."""
    labels = Labels.of(history := await world.history(world.key))
    assert history.run is not None
    command = _cause(history, history.run.event(labels.names[item["resend"]]))
    given = next(g for g in world.given if g.command == command)
    if not await world.publish(given, given.command):
        world.traffic.traces.append(
            ("case", msgspec.json.encode({"run": str(world.key), "code": "duplicate_event_ignored"}))
        )


@verb("restart")
async def restart(world: World, item: Item) -> None:
    await world.replace_workers()


def point_of(armed: Item) -> CrashPoint:
    """Where a crash is armed."""
    point = armed["point"]
    return CrashPoint(point, armed.get("step"), int(armed.get("execution", 1)), point != "between_outputs")


@verb("crash")
async def crash(world: World, item: Item) -> None:
    point = point_of(item["crash"])
    if point.point != "during_step":
        world.traffic.point = point
        return

    def at(run: Any, step: str) -> bool:
        if step != point.step:
            return False
        point.seen += 1
        return point.seen == point.execution

    world.bodies.crash = at


@verb("workers")
async def workers(world: World, item: Item) -> None:
    world.wanted = int(item["workers"])
    world.echoes = world.wanted - 1 if item.get("deliver_to") == "all" else 0
    if world.started:
        world.staff()


@verb("advance_s")
async def advance(world: World, item: Item) -> None:
    await world.pass_time(round(float(item["advance_s"]) * 1000))
    while await world.relay.fire():
        await world.settle()


@verb("run_deadline_s")
async def run_deadline(world: World, item: Item) -> None:
    world.deadline_s = float(item["run_deadline_s"])


@verb("cancel")
async def cancel(world: World, item: Item) -> None:
    await world.give(world.key, "cancel", {"reason": "the case"})


@verb("change_config")
async def change_config(world: World, item: Item) -> None:
    world.stored_config.update(item["change_config"])


@verb("unregister_in_caller")
async def unregister(world: World, item: Item) -> None:
    """Every agent knows its own classes only; the caller never knew that one."""
    name = item["unregister_in_caller"]
    assert name not in world.definitions[MAIN].events


@verb("redeliver_child_stop")
async def redeliver_child_stop(world: World, item: Item) -> None:
    await world.relay.repeat_answers(int(item["redeliver_child_stop"]))


@verb("slots")
async def slots(world: World, item: Item) -> None:
    world.slots = int(item["slots"])
    await world.replace_workers()


@verb("pause_appends")
async def pause(world: World, item: Item) -> None:
    world.traffic.may_append.clear()


@verb("resume_appends")
async def resume(world: World, item: Item) -> None:
    world.traffic.may_append.set()


@verb("restart_walk")
async def restart_walk(world: World, item: Item) -> None:
    history = await world.history(world.key)
    began: dict[str, list[str]] = {}
    seen: set[str] = set()
    assert history.run is not None
    for event in history.events(e.StepBegan):
        key = execution_key(event.walk, event.step, event.trigger)
        if key not in seen:
            seen.add(key)
            began.setdefault(event.step, []).append(history.run.executions[key])
    keep = []
    for label in item["restart_walk"].get("keep", []):
        step, _, number = label.partition("#")
        keep.append(began[step][int(number) - 1])
    await world.give(world.key, "restart", {"keep": keep})


async def play(world: World) -> None:
    """All items in order: each when the run has nothing left to do, or all before the dispatcher starts (`burst`)."""
    burst = world.case.pace == "burst"
    world.staff()
    for item in world.case.publish:
        await perform(world, item)
        if not burst or world.started:
            await world.settle()
        if burst and world.started and world.runs:
            await world.stop_all()  # the run is there; all that follows is stored before anybody looks
    if burst:
        world.staff()
        await world.settle()
    await asyncio.sleep(0)
