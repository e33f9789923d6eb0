"""`waybook signal` and `waybook cancel`."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from waybook.cli.giving import (
    WAIT,
    Actor,
    CommandId,
    Given,
    NeededReason,
    Patience,
    Reason,
    actor_name,
    give,
    giving,
    report,
)
from waybook.cli.options import Agent, DataDir, Json, RunId
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.engine.aggregates.keys import thread_key
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.history import read_history

ThreadStatus = Annotated[str, typer.Argument(metavar="STATUS", help="open or resolved.")]
EventName = Annotated[str, typer.Argument(metavar="EVENT", help="The type of an external event of the agent.")]
Data = Annotated[str, typer.Option("--data", metavar="JSON", help="The event's fields.")]
Request = Annotated[str | None, typer.Option("--request", help="The request that it answers.", show_default=False)]


def signal(
    run: RunId,
    event: EventName,
    data: Data = "{}",
    request: Request = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Hand an event from outside to a run: an answer, a person's word."""
    try:
        body = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInput(f"--data is no JSON object: {error}") from error
    payload = {"event": event, "body": body, "request": request}
    given = run_async(give(Settings.load(), "signal", run, payload, agent, actor_name(by), command_id, wait, data_dir))
    report(given, f"{event} was handed to {given.key.run}", as_json=as_json)


def cancel(
    run: RunId,
    reason: NeededReason,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Stop a run for good."""
    payload = {"reason": reason}
    given = run_async(give(Settings.load(), "cancel", run, payload, agent, actor_name(by), command_id, wait, data_dir))
    report(given, f"{given.key.run} was cancelled", as_json=as_json)


def take_over(
    run: RunId,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Go on with a run by hand: nothing of it begins any more until it is handed back."""
    payload, actor = {"reason": reason}, actor_name(by)
    given = run_async(give(Settings.load(), "take-over", run, payload, agent, actor, command_id, wait, data_dir))
    report(given, f"{given.key.run} is in the hands of {actor}", as_json=as_json)


def hand_back(
    run: RunId,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Give a run back that was taken over: what was broken off and what is due begins again."""
    payload, actor = {"reason": reason}, actor_name(by)
    given = run_async(give(Settings.load(), "hand-back", run, payload, agent, actor, command_id, wait, data_dir))
    report(given, f"{given.key.run} goes on by itself", as_json=as_json)


def thread(
    run: RunId,
    status: ThreadStatus,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Close the conversation of a run (resolved), or open it again; a new message opens it by itself."""
    if status not in ("open", "resolved"):
        raise InvalidInput(f"a thread is open or resolved, not {status!r}")
    payload, actor = {"status": status, "reason": reason}, actor_name(by)
    given = run_async(_give_thread(Settings.load(), run, payload, agent, actor, command_id, wait, data_dir))
    report(given, f"the thread {given.key.run} is {status}", as_json=as_json)


async def _give_thread(
    settings: Settings,
    run: str,
    payload: dict[str, Any],
    agent: str,
    actor: str,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
) -> Given:
    async with giving(settings, "thread", data_dir, wait) as (installation, client):
        key = await find_run(installation, run, agent)
        folded, _ = await read_history(installation.wiring.state, Codec(), key)
        thread = thread_key(key.tenant, folded.thread or key.run)
        return Given(thread, await client.give(thread, "thread", payload, actor=actor, command=command_id))
