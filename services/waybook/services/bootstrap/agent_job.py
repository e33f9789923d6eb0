"""Starts a run of one agent in an installation, and waits until it has ended or is held."""

import asyncio
from collections.abc import Collection
from typing import Any
from uuid import uuid4

import msgspec

from waybook.agents import Agent, StartEvent
from waybook.agents.definition import AgentDefinition, define
from waybook.engine.hold import Hold, PassedOver, Why, hold, why
from waybook.engine.run import Run
from waybook.engine.stall import OpenRequest, open_requests
from waybook.events.codec import Codec
from waybook.events.command import Command, StartPayload
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RUN_TOKEN, RunKey, check_token, command_subject
from waybook.services.bootstrap.installation import Installation, walking
from waybook.services.bootstrap.loading import load_agent
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.bootstrap.settings import Settings
from waybook.services.commanding.client import CommandClient
from waybook.services.walker.lifecycle import Lifecycle

POLL_S = 0.02


class AgentRun(msgspec.Struct, frozen=True):
    """Where a run stands. `result` are the fields of its stop event, `stop` that event's type.

    `requests` are questions that nobody answered; `waybook signal RUN EVENT --request NAME` does. `error`: the step that
    failed, and what it said. `passed_over`: those without which the run went on. `why`: all that
    `waybook why` says.
    """

    run: str
    agent: str
    state: str
    hold: Hold
    next_move: str
    requests: tuple[OpenRequest, ...] = ()
    stop: str | None = None
    result: dict[str, Any] | None = None
    reason: str | None = None
    error: str | None = None
    passed_over: tuple[PassedOver, ...] = ()
    why: Why | None = None


def own_agents(settings: Settings) -> list[AgentDefinition]:
    """The agents that the settings name. Raises NoSuchAgent, DefinitionError."""
    return [on_grid(settings, load_agent(name)) for name in settings.agents]


def on_grid(settings: Settings, agent: type[Agent]) -> AgentDefinition:
    """An agent whose failed steps are tried again on the installation's grid. Raises DefinitionError."""
    return define(agent).with_retry_grid(round(settings.retry_grid_s * 1000))


def start_payload(
    agent: type[Agent], event: str | None, data: dict[str, Any], configuration: dict[str, Any]
) -> StartPayload:
    """The start of a run with the agent's start event `event`, by default its only one.

    Raises InvalidInput, for a field that there is not as well: it is a slip of the pen.
    """
    definition = define(agent)
    starts = {n: c for n, c in definition.events.items() if issubclass(c, StartEvent)}
    if event is None and len(starts) == 1:
        event = next(iter(starts))
    if event not in starts:
        raise InvalidInput(f"with which event does the run start? {definition.engine.agent} takes {', '.join(starts)}")
    _known(event, starts[event], data)
    _known("the configuration", agent.config, configuration)
    try:
        output = definition.output(msgspec.convert(data, starts[event]))
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{event} cannot be {data!r}: {error}") from error
    return StartPayload(event=output.event, schema=output.schema, body=output.payload, configuration=configuration)


def _known(what: str, cls: type[msgspec.Struct], data: dict[str, Any]) -> None:
    fields = [field.encode_name for field in msgspec.structs.fields(cls)]
    for name in data:
        if name not in fields:
            raise InvalidInput(f"{what} has no field `{name}`; its fields: {', '.join(fields) or 'none'}")


async def start_and_wait(
    installation: Installation, agent: type[Agent], start: StartPayload, run: str | None, timeout_s: float
) -> AgentRun:
    """Gives the start, walks, and returns when the run has ended, is held, or after `timeout_s`.

    The agents that the settings name are carried as well, for work that is handed to them. A run that is there already
    goes on where it stands. Raises what `walking` raises, NoSuchAgent, DefinitionError.
    """
    definition = on_grid(installation.settings, agent)
    others = [d for d in own_agents(installation.settings) if d.engine.agent != definition.engine.agent]
    key = _key(installation, definition, run)
    async with (
        walking(installation, [definition, *others], {}) as walker,
        scheduling(installation, [definition, *others], recurring=False),
    ):
        command = Command(
            id=f"start-{key.agent}-{key.run}",
            verb="start",
            issued_at=installation.wiring.clock.now(),
            actor="cli",
            payload=msgspec.Raw(msgspec.json.encode(start)),
        )
        subject = command_subject(key, "start", issuer="cli")
        await installation.wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)
        carried = frozenset(d.engine.agent for d in (definition, *others))
        return await _rested(walker.lifecycle, definition, key, timeout_s, carried)


async def ask_and_wait(
    installation: Installation,
    client: CommandClient,
    agent: type[Agent],
    start: StartPayload,
    run: str | None,
    timeout_s: float,
) -> AgentRun:
    """`start_and_wait` where walkers are at work already, which have to carry the agent. Raises InvalidInput when not."""
    definition = define(agent)
    key = _key(installation, definition, run)
    answer = await client.give(key, "start", start, actor="cli")
    if not answer.ok:
        raise InvalidInput(f"{answer.text} ({answer.reason}); name it in WAYBOOK_AGENTS where the walkers are started")
    wiring = installation.wiring
    lifecycle = Lifecycle(wiring.state, Codec(), wiring.clock, "cli")
    return await _rested(lifecycle, definition, key, timeout_s)


def _key(installation: Installation, definition: AgentDefinition, run: str | None) -> RunKey:
    token = check_token("run", run, RUN_TOKEN) if run is not None else uuid4().hex[:26]
    return RunKey(installation.settings.tenant, definition.engine.agent, token)


async def _rested(
    lifecycle: Lifecycle,
    definition: AgentDefinition,
    key: RunKey,
    timeout_s: float,
    carried: Collection[str] = (),
) -> AgentRun:
    """Where the run stands when it rests, or after `timeout_s`; one that waits for a `carried` agent alone does not rest."""
    end = asyncio.get_running_loop().time() + timeout_s
    run: Run | None = None
    held = Hold("none")
    while asyncio.get_running_loop().time() < end:
        run = await lifecycle.load(key, run)
        if run is not None:
            held = hold(definition.engine, run)
            rests = run.ended or held.kind != "none" or not (run.open or run.offers)
            if rests and not _is_worked_on(definition, run, carried):
                break
        await asyncio.sleep(POLL_S)
    return _told(definition, key, run, held)


def _is_worked_on(definition: AgentDefinition, run: Run, carried: Collection[str]) -> bool:
    """Whether all that an open run waits for are agents that are at work in this process."""
    asked = open_requests(definition.engine, run) if carried and not run.ended else ()
    return bool(asked) and all(request.agent in carried for request in asked)


def _told(definition: AgentDefinition, key: RunKey, run: Run | None, held: Hold) -> AgentRun:
    if run is None:
        return AgentRun(key.run, key.agent, "unknown", held, "the start was not decided in time")
    answer = why(definition.engine, run, scheduler=True)
    stop = run.event(run.result) if run.result is not None else None
    return AgentRun(
        run=key.run,
        agent=key.agent,
        state=run.state,
        hold=held,
        next_move=answer.next_move,
        requests=answer.requests,
        stop=stop.event if stop is not None else None,
        result=msgspec.json.decode(stop.payload) if stop is not None else None,
        reason=run.reason,
        error=answer.error,
        passed_over=answer.passed_over,
        why=answer,
    )
