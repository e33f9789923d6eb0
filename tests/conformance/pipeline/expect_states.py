"""What must hold of states and fields of messages."""

from collections import Counter
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import history as h
from tests.conformance.pipeline.compare import Differences, differences, show
from tests.conformance.pipeline.expect import reads
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.names import RESET_STATE
from tests.conformance.pipeline.world import World

from waybook.engine.hold import hold


async def _run(world: World, message: Message) -> h.History:
    return await world.history(message.key)


async def state_of(world: World, message: Message) -> str:
    """The state of a message; one whose start is still waiting is received."""
    run = (await _run(world, message)).run
    return run.state if run is not None else message.state


async def _states(world: World) -> dict[str, str]:
    return {name: await state_of(world, message) for name, message in world.messages.items()}


async def _was_reset(world: World, message: Message) -> bool:
    """After a retry or a release `received` means that the transition to received is in the history: the same commit
    may carry the run on from there."""
    if not world.resets:
        return False
    history = await _run(world, message)
    return any(to == RESET_STATE for _, to in h.transitions(history, world.since(history)))


async def _states_for(world: World, wanted: Any) -> dict[str, str]:
    """The states, `received` for those that were reset where that is expected."""
    found = await _some_states(world)
    for name, message in world.messages.items():
        expected = wanted.get(name) if isinstance(wanted, dict) else wanted
        allowed = expected if isinstance(expected, list) else [expected]
        if RESET_STATE in allowed and found[name] not in allowed and await _was_reset(world, message):
            found[name] = RESET_STATE
    return found


@reads("state")
async def _state(world: World, value: Any) -> Differences:
    """The state of the only message, or every message has it."""
    return [d for name, s in (await _states_for(world, value)).items() for d in differences(value, s, where=name)]


async def _some_states(world: World) -> dict[str, str]:
    states = await _states(world)
    if not states:
        raise Unsupported("expect.state: the case has no message")
    return states


@reads("state_in", "all_states_in")
async def _state_in(world: World, value: Any) -> Differences:
    return [f"{n} is {s}, none of {value}" for n, s in (await _states_for(world, value)).items() if s not in value]


@reads("all_states")
async def _all_states(world: World, value: Any) -> Differences:
    return await _state(world, value)


@reads("states")
async def _states_by_id(world: World, value: Any) -> Differences:
    return differences(value, await _states_for(world, value))


@reads("state_counts")
async def _state_counts(world: World, value: Any) -> Differences:
    counts = Counter((await _states(world)).values())
    return differences(value, {**dict.fromkeys(value, 0), **counts})


@reads("states_unchanged")
async def _states_unchanged(world: World, value: Any) -> Differences:
    states = await _some_states(world)
    changed = [f"{n} is {s}, not {world.messages[n].state}" for n, s in states.items() if s != world.messages[n].state]
    return changed if value else []


@reads("states_visited")
async def _states_visited(world: World, value: Any) -> Differences:
    message = world.message()
    history = await _run(world, message)
    return differences(value, h.states_visited(history, max(message.arranged, world.since(history))))


@reads("never_transition")
async def _never_transition(world: World, value: Any) -> Differences:
    taken = {pair for history in await world.histories() for pair in h.transitions(history)}
    return [f"{a} -> {b} is in the history" for a, b in value if (a, b) in taken]


@reads("hold", "hold_in")
async def _hold(world: World, value: Any) -> Differences:
    wanted = value if isinstance(value, list) else [value]
    run = (await _run(world, world.message())).run
    kind = hold(world.definition.engine, run).kind if run is not None else "none"
    return [] if kind in wanted else [f"{kind}, expected {show(value)}"]


@reads("message")
async def _message(world: World, value: Any) -> Differences:
    """Fields of the only message; of every one where there are several."""
    found: Differences = []
    for name, message in world.messages.items():
        found += differences(value, h.message_fields(await _run(world, message), world.clock.now()), message.kept, name)
    return found


@reads("messages")
async def _messages(world: World, value: Any) -> Differences:
    found: Differences = []
    for name, fields in value.items():
        message = world.message(name)
        found += differences(
            fields, h.message_fields(await _run(world, message), world.clock.now()), message.kept, name
        )
    return found


@reads("messages_stored")
async def _messages_stored(world: World, value: Any) -> Differences:
    waiting = sum(not m.stored for m in world.messages.values())
    return differences(value, len(await world.histories()) + waiting)


@reads("agentDecision")
async def _agent_decision(world: World, value: Any) -> Differences:
    fields = h.message_fields(await _run(world, world.message()))
    return differences(value, (fields.get("agentDecision") or {}).get("decision"))


@reads("injection_detected")
async def _injection_detected(world: World, value: Any) -> Differences:
    flags = h.message_fields(await _run(world, world.message())).get("securityFlags") or {}
    return differences(value, flags.get("injectionDetected", False))


@reads("draft_must_contain")
async def _draft_must_contain(world: World, value: Any) -> Differences:
    text = h.message_fields(await _run(world, world.message())).get("draftResponse") or ""
    return [f"{part!r} is not in the draft" for part in value if part not in text]
