"""Steps: start, run_step, deliver, resume, drain, and the bookkeeping calls of a walker."""

import asyncio
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import people, product, results
from tests.conformance.pipeline.arranging import store
from tests.conformance.pipeline.gate import Body, Order
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.outside import Crash, Pause
from tests.conformance.pipeline.verbs import Action, verb
from tests.conformance.pipeline.world import Outcome, World

from waybook.engine.inputs import Accepted, Completed, Failed, Input, Refused
from waybook.engine.inputs import World as Read
from waybook.engine.run import Action as Attempt
from waybook.events.engine import Failure, StepBegan
from waybook.events.subjects import RunKey

RUN = "run:"
WAYS = ("output", "input", "throws", "route_throws", "background", "branch")


@verb("start", "message", "each")
async def start(world: World, action: Action) -> None:
    """Pipeline start (E1): the command that waits for a stored mail is taken; for a run under way it comes again."""
    for message in world.concerned(action):
        if message.stored and not (message.hand_over and message.state == "received"):
            await product.submit(world, product.take_in(world, message.mail))
        else:
            await world.hand_over(message)
        await world.settle()


@verb("run_step", "kind", "message", "crash", "pause", *WAYS)
async def run_step(world: World, action: Action) -> None:
    """Begins one step, does its work, stores its end with all that belongs to it, stops before the next."""
    message = world.message(action.get("message"))
    order = _order(message.key, action["kind"], action)
    if action.get("crash") is not None:
        await _crash(world, message, order, action["crash"])
        return
    if action.get("pause") is not None:
        _pause(world, order, action["pause"])
    world.gate.order(order)
    await _reach(world, message, order)
    world.gate.withdraw(order)


async def _reach(world: World, message: Message, order: Order) -> None:
    """The walker is asked to go on with the run, unless the step stands at the gate already."""
    standing = bool(_standing(world, order)) or order.taken
    await world.hand_over(message, force=not standing)
    await world.settle()


def _order(run: RunKey, step: str, action: Action) -> Order:
    return Order(
        run,
        step,
        branch=action.get("branch"),
        output=action.get("output", msgspec.UNSET),
        input=action.get("input") or {},
        throws=action.get("throws"),
        route_throws=action.get("route_throws"),
        background=bool(action.get("background")),
    )


def _pause(world: World, order: Order, point: str) -> None:
    if point != "after_decision":
        raise Unsupported(f"`run_step`: pause {point} is not interpreted")
    world.traffic.pause = Pause(order.run, order.step, asyncio.Event(), world.go_on)


async def _crash(world: World, message: Message, order: Order, point: str) -> None:
    """The worker dies at the crash point of this execution."""
    if point == "after_begin":
        await _reach(world, message, order)
        for body in _standing(world, order):
            world.worker_of(body).kill()
        return
    if point == "after_call":
        world.effects.crash_after_call = True
        world.gate.order(order)
        await _reach(world, message, order)
        world.gate.withdraw(order)
        return
    if point == "during_commit":
        stored = world.choices.choose("during_commit", 2) == 0
    elif point in ("before_commit", "after_commit"):
        stored = point == "after_commit"
    else:
        raise Unsupported(f"`run_step`: the crash point {point} is not interpreted")
    world.traffic.crash = Crash(order.run, order.step, stored)
    world.gate.order(order)
    await _reach(world, message, order)
    world.gate.withdraw(order)
    world.traffic.crash = None


def _standing(world: World, order: Order) -> list[Body]:
    return [b for b in world.gate.waiting() if b.run == order.run and b.step == order.step and not b.opened]


@verb("resume")
async def resume(world: World, action: Action) -> None:
    """Lets the held step go on and finish."""
    for worker in world.workers:
        worker.cont()
    world.script.resume()
    world.go_on.set()
    await world.settle()


@verb("drain", "message", "until_step_begins")
async def drain(world: World, action: Action) -> None:
    """Lets everything runnable run: commands and steps. Timers and periodic jobs do not move."""
    only = world.message(action["message"]) if action.get("message") is not None else None
    messages = [only] if only is not None else list(world.messages.values())
    limit = action.get("until_step_begins")
    if only is None:
        await world.ghost.release()
    if limit is None:
        world.gate.open(lambda body: only is None or body.run == only.key)
        for message in messages:
            await world.hand_over(message)
        await world.settle()
    else:
        await _until_begun(world, messages, int(limit))
    world.gate.close()


async def _until_begun(world: World, messages: list[Message], limit: int) -> None:
    """Opens the gate for one body after the other until so many steps have begun, those that a verb began included."""
    for message in messages:
        await world.hand_over(message)
    await world.settle()
    while await world.begun_since_mark() < limit:
        standing = [b for b in world.gate.waiting() if not b.opened and b.run in {m.key for m in messages}]
        if not standing:
            return
        world.gate.order(Order(standing[0].run, standing[0].step))
        await world.settle()


@verb("deliver", "command", "times", "concurrent", "message", *WAYS)
async def deliver(world: World, action: Action) -> None:
    """Delivers one command several times, one after the other or to as many workers at once."""
    command = str(action["command"])
    if not command.startswith(RUN):
        raise Unsupported(f"`deliver`: the command {command} is not interpreted yet")
    message = world.message(action.get("message"))
    times = int(action.get("times", 1))
    step = command.removeprefix(RUN)
    orders = [_order(message.key, step, action) for _ in range(times)]
    if action.get("concurrent"):
        world.wanted_workers = max(world.wanted_workers, times)
        world.staff()
    for order in orders:
        world.gate.order(order)
    concurrent = bool(action.get("concurrent"))
    name = await world.hand_over(
        message, force=True, echoes=times - 1 if concurrent else 0, ack_lost=times > 1 and not concurrent
    )
    await world.settle()
    if name is not None and not concurrent:
        for number in range(1, times):
            await world.redeliver(name, ack_lost=number < times - 1)
            await world.settle()
    for order in orders:
        world.gate.withdraw(order)


@verb("step_begin", "kind", "message")
async def step_begin(world: World, action: Action) -> None:
    """A walker begins a step: refused for a kind that the agent does not have."""
    message = world.message(action.get("message"))
    await store(world, message)
    if action["kind"] not in world.definition.engine.steps:
        payload = {"step": action["kind"], "trigger": ""}
        asked = await world.client.give(message.key, "exec", payload, issuer="relay", actor="relay")
        await world.settle()
        world.hear([people.outcome(asked, human=False)])
        return
    committed = await world.ghost.begin(message.key)
    message.hand_over = False
    begun = [x for x in committed.decision.events if isinstance(x, StepBegan) and x.step == action["kind"]]
    answer = {"ok": True, "action": begun[0].action} if begun else {"ok": False, "reason": "stale"}
    world.hear([answer])


@verb("step_end", "action", "kind", "message", "output")
async def step_end(world: World, action: Action) -> None:
    """A walker ends an attempt with a result."""
    await _bookkeeping(world, action, _completed)


@verb("step_fail", "action", "kind", "message", "errorMessage")
async def step_fail(world: World, action: Action) -> None:
    """A walker ends an attempt with an error."""
    await _bookkeeping(world, action, _failed)


async def _bookkeeping(world: World, action: Action, make: Any) -> None:
    name = action.get("action")
    message = next((m for m in world.messages.values() if name in m.rows), None) or world.message(action.get("message"))
    await store(world, message)
    lifecycle = world.ghost.lifecycle()
    run = await lifecycle.load(message.key)
    assert run is not None
    attempt_id = message.rows.get(str(name), str(name)) if name is not None else _newest(run.actions, action["kind"])
    attempt = run.actions.get(attempt_id)
    running = attempt if attempt is not None and attempt.status == "running" else None
    given: Input = make(world, attempt_id, action, running)
    committed = await lifecycle.commit(world.definition.engine, message.key, run, [given], Read())
    world.hear([_answer(committed.decision.outcomes[0])])


def _newest(actions: dict[str, Attempt], kind: str) -> str:
    return next((a.id for a in reversed(actions.values()) if a.step == kind), kind)


def _completed(world: World, attempt: str, action: Action, running: Attempt | None) -> Completed:
    """What cannot be a result of that step any more is not made into one: the attempt decides first."""
    if running is None:
        return Completed(attempt, ())
    event = results.from_output(running.step, _parsed(action.get("output")), {}, world.settings, world.clock.now())
    return Completed(attempt, world.definition.outputs(running.step, event), 1)


def _parsed(output: Any) -> Any:
    return msgspec.json.decode(output) if isinstance(output, str) else output


def _failed(world: World, attempt: str, action: Action, running: Attempt | None) -> Failed:
    return Failed(attempt, Failure("Exception", action.get("errorMessage") or "failed"), 1)


def _answer(outcome: Any) -> Outcome:
    if isinstance(outcome, Refused):
        return {"ok": False, "reason": outcome.reason}
    return {"ok": isinstance(outcome, Accepted)}
