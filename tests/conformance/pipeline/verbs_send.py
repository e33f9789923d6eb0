"""Sends: their timers, the mail service's answers, and what brakes them."""

import asyncio
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import people, product
from tests.conformance.pipeline.backends import LEASE_MS
from tests.conformance.pipeline.mailing import NAMES
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.verbs import Action, verb
from tests.conformance.pipeline.verbs_people import COMMON, give, say
from tests.conformance.pipeline.verbs_reports import report
from tests.conformance.pipeline.world import World

from waybook.agents.effects import Done, EffectCall, NotDone, Unsure
from waybook.engine.aggregates.keys import grants_key, policy_key
from waybook.engine.hold import hold
from waybook.engine.run import Run
from waybook.events import engine as e
from waybook.inbox import events as ev
from waybook.services.scheduler.effects import handed_over
from waybook.services.walker.requests import SettlePayload

RECONCILE_BATCH = 100
PATIENCE_S = 10.0
MEANS = {"sent": "succeeded", "failed": "failed", "unknown": "unknown"}


async def _run(world: World, message: Message) -> Run:
    run = (await world.history(message.key)).run
    if run is None:
        raise Unsupported("the message has no history")
    return run


@verb("send_fires", "message", "each", "stale")
async def send_fires(world: World, action: Action) -> None:
    """The send timer fires now, or one of an earlier approval does."""
    for message in world.concerned(action):
        run = await _run(world, message)
        pending = [n for n, t in run.timers.items() if t.timer_class == "send"]
        armed = [x.name for x in (await world.history(message.key)).entries() if isinstance(x.event, e.TimerArmed)]
        stale = [n for n in armed if n in run.resolved]
        timer = (stale if action.get("stale") else pending)[-1:]
        if not timer:
            raise Unsupported("`send_fires`: the message has no such timer")
        with world.sending():
            await world.client.give(
                message.key, "timer", {"timer": timer[0]}, issuer="relay", actor="relay",
            )  # fmt: skip
            await world.settle()


@verb("timer_fires", "timer", "which", "message")
async def timer_fires(world: World, action: Action) -> None:
    """The fire of a timer reaches the scheduler now, whatever the clock says."""
    message = world.message(action.get("message"))
    run = await _run(world, message)
    timer_class = action["timer"]
    which = action.get("which", "pending")
    if which == "pending":
        name = next((n for n, t in run.timers.items() if t.timer_class == timer_class), None)
    elif which == "resolved":
        name = next(iter(reversed(run.resolved)), None)
    else:
        raise Unsupported(f"`timer_fires`: which {which} is not interpreted yet")
    if name is None:
        raise Unsupported("`timer_fires`: there is no such timer")
    with world.sending():
        await world.scheduling.fires_early(message.key, name, timer_class)
        await world.settle()


@verb("provider", "outcome", "message", "error", "to", "provider_id")
async def provider(world: World, action: Action) -> None:
    """The mail service answers the last send."""
    outcome = action["outcome"]
    if outcome in ("bounced", "complained"):
        await report(world, action)
        return
    taken = world.mails.last()
    if taken.answer.done():  # it says again what it said
        return
    if outcome == "sent":
        taken.answer.set_result(Done({"message_id": "<sent@ours.example>", "provider_id": action.get("provider_id")}))
    elif outcome == "failed":
        taken.answer.set_result(NotDone(str(action.get("error", "failed")), retryable=False))
    elif outcome == "unknown":
        taken.answer.set_result(Unsure("the connection was lost"))
    else:
        raise Unsupported(f"`provider`: the outcome {outcome} is not interpreted")
    if action.get("to") == "superseded":
        for worker in world.workers:
            worker.cont()
    with world.sending():
        await _stored(world, taken.call, MEANS[outcome])
        await world.settle()


async def _stored(world: World, call: EffectCall, outcome: str) -> None:
    """Returns when the outcome is stored, which no command tells of."""
    for _ in range(round(PATIENCE_S / 0.005)):
        for history in await world.histories():
            operation = history.run.operations.get(call.key) if history.run is not None else None
            known = operation is not None and str(history.key) == call.run
            if known and operation is not None and outcome in (operation.outcome, *operation.disputed):
                return
        await asyncio.sleep(0.005)


@verb("kill_switch", "user", "on", "reason", "command_id")
async def kill_switch(world: World, action: Action) -> None:
    payload = {"on": bool(action.get("on", True)), "reason": action.get("reason")}
    await _aggregate(world, action, policy_key(product.TENANT), "kill-switch", payload)
    with world.sending():
        await world.scheduling.follow_all()
        await world.settle()


@verb("change_policy", "user", "command_id")
async def change_policy(world: World, action: Action) -> None:
    payload = {"values": {"review": f"changed at {world.clock.now()}"}, "reason": None}
    await _aggregate(world, action, policy_key(product.TENANT), "policy", payload)


@verb("revoke_grant", "user", "of", "command_id")
async def revoke_grant(world: World, action: Action) -> None:
    """`user` may not decide any more; somebody else keeps the right to give grants."""
    owner = {**action, "user": "owner"}
    everything = ("grants", "policy", "kill-switch", "thread", "decide")
    await _aggregate(world, owner, grants_key(product.TENANT), "grants", {"person": "owner", "may": everything})
    payload = {"person": action.get("of") or action["user"], "may": ()}
    await _aggregate(
        world, {**owner, "command_id": action.get("command_id")}, grants_key(product.TENANT), "grants", payload
    )


async def _aggregate(world: World, action: Action, key: Any, verb_name: str, payload: Any) -> None:
    asked = await world.client.give(
        key, verb_name, payload, actor=str(action.get("user", "u1")), command=action.get("command_id"), person=True
    )
    await world.settle()
    world.hear([people.outcome(asked, human=True)])


@verb("settle", "operation", "arrived", *COMMON)
async def settle(world: World, action: Action) -> None:
    """A person says whether an operation took effect."""
    name = NAMES.get(action["operation"], action["operation"])
    for message in world.concerned(action):
        run = await _run(world, message)
        key = str(next((k for k, o in run.operations.items() if o.intent.name == name), name))
        payload = SettlePayload(key, "succeeded" if action["arrived"] else "absent")
        with world.sending():
            await give(world, {**action, "message": message.id}, "settle", payload)


@verb("undo_bulk", "ids", "user")
async def undo_bulk(world: World, action: Action) -> None:
    for name in world.messages if action["ids"] == "all" else action["ids"]:
        await say(world, {**action, "message": name}, lambda a: ev.SendCancelled(by=a["user"]))


async def reconcile_approved(world: World) -> None:
    """Approved runs that stand longer than they should are looked at, the oldest first; those in doubt are asked for."""
    config = world.case.given.get("config") or {}
    since = world.clock.now() - round(float(config.get("reconcile_after_minutes", 10)) * 60_000)
    due = []
    for history in await world.histories():
        moves = ((x.at, x.event) for x in history.entries())
        entered = [at for at, event in moves if isinstance(event, e.Transitioned) and event.to_state == "approved"]
        run = history.run
        if run is not None and run.state == "approved" and entered and entered[-1] <= since and _has_a_move(world, run):
            due.append((entered[-1], run))
    with world.sending():
        for _, run in sorted(due, key=lambda pair: pair[0])[:RECONCILE_BATCH]:
            await _look_at(world, run)
        await world.settle()


def _due_timers(world: World, run: Run) -> list[str]:
    return [n for n, t in run.timers.items() if t.timer_class in ("send", "wait") and t.due <= world.clock.now()]


def _has_a_move(world: World, run: Run) -> bool:
    """Whether there is anything to do about it now: what waits for a time to come is left alone."""
    return bool(_due_timers(world, run)) or hold(world.definition.engine, run).reason in ("send", None)


async def _look_at(world: World, run: Run) -> None:
    """What the scheduler does: timers that are due are handed over; a run without a blocker is asked to go on."""
    timers = _due_timers(world, run)
    for name in timers:
        given = handed_over(world.scheduling.ref(run.key, name, run.timers[name]))
        await world.client.give(run.key, given.verb, given.payload, issuer="relay", actor="relay", command=given.id)
    if not timers:
        await world.client.give(run.key, "continue", issuer="relay", actor="relay")


async def pass_and_fire(world: World, ms: int) -> None:
    """Moves the clock; one-shot timers that fall due on the way fire in order."""
    target = world.clock.now() + ms
    while True:
        due = await world.scheduling.next_due()
        if due is None or due > target:
            break
        await world.pass_time(max(0, due - world.clock.now()))
        with world.sending():
            await world.settle()
            for timer_class in ("deadline", "wait", "send"):
                await world.scheduling.fire(timer_class)
                await world.settle()
        if await world.scheduling.next_due() == due:
            break
    await world.pass_time(target - world.clock.now())
    await world.settle()


SUPERSEDE_MS = LEASE_MS
