"""`waybook settle` and `waybook operations`: side effects that nobody but a person can say the outcome of."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from waybook.cli.giving import WAIT, Actor, CommandId, Given, Patience, Reason, actor_name, give, giving, report
from waybook.cli.options import Agent, DataDir, Json, RunId
from waybook.cli.output import print_json, print_table, when
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.engine.operations import is_open
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.projections.errors import NoReadModels
from waybook.services.bootstrap.installation import looked_at
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.history import read_history
from waybook.services.reading.models import caught_up

Operation = Annotated[
    str,
    typer.Argument(
        metavar="OPERATION", help="Its key as `waybook operations` shows it, or its name if only one is open."
    ),
]
Arrived = Annotated[
    bool | None,
    typer.Option("--arrived/--not-arrived", help="Whether the side effect took place.", show_default=False),
]
Open = Annotated[bool, typer.Option("--open", help="Only those whose outcome nobody knows, or two disagree on.")]
OfRun = Annotated[str | None, typer.Argument(metavar="[RUN]", help="Only those of this run.", show_default=False)]


def operations(
    run: OfRun = None, open_only: Open = False, agent: Agent = "inbox", data_dir: DataDir = None, as_json: Json = False
) -> None:
    """List external side effects, the latest first."""
    rows = run_async(_operations(Settings.load(), run, agent, open_only, data_dir))
    if as_json:
        print_json(rows)
        return
    columns = ("run", "operation", "name", "status", "by", "intended", "settled", "disputed")
    print_table(
        "operations",
        columns,
        [
            (r["run"], r["operation"], r["name"], r["status"], r["settled_by"], when(r["intended_at"]),
             when(r["settled_at"]), r["disputed"])
            for r in rows
        ],
    )  # fmt: skip


async def _operations(
    settings: Settings, run: str | None, agent: str, open_only: bool, data_dir: Path | None
) -> list[dict[str, Any]]:
    async with looked_at(settings, "operations", data_dir) as installation:
        key = await find_run(installation, run, agent) if run is not None else None
        async with caught_up(installation) as models:
            with suppress(NoReadModels):  # nothing was ever walked here
                return await models.operations(
                    run=key.run if key is not None else None,
                    agent=agent if key is not None else None,
                    tenant=settings.tenant,
                    open_only=open_only,
                )
    return []


def settle(
    run: RunId,
    operation: Operation,
    arrived: Arrived = None,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Say whether a side effect took place whose outcome is unknown or disputed; what waits for it goes on.

    Say --not-arrived only when you know it: the side effect is made again then.
    """
    if arrived is None:
        raise InvalidInput("say --arrived or --not-arrived")
    given = run_async(
        _settle(Settings.load(), run, operation, arrived, reason, agent, actor_name(by), command_id, wait, data_dir)
    )
    word = "took place" if arrived else "did not take place"
    report(given, f"{given.shown['operation']} of {given.key.run} {word}", as_json=as_json)


async def _settle(
    settings: Settings,
    run: str,
    operation: str,
    arrived: bool,
    reason: str | None,
    agent: str,
    actor: str,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
) -> Given:
    async with giving(settings, "settle", data_dir, wait) as (installation, client):
        key = await find_run(installation, run, agent)
        folded, _ = await read_history(installation.wiring.state, Codec(), key)
        name = _operation(folded, operation)
        payload = {
            "operation": name,
            "outcome": "succeeded" if arrived else "absent",
            "evidence": {"reason": reason} if reason is not None else {},
        }
        asked = (operation, arrived, reason)
        answer = await client.give(key, "settle", payload, actor=actor, command=command_id, intention=asked)
        return Given(key, answer, {"operation": name})


def _operation(run: Run, given: str) -> str:
    """The key that is meant: given whole, or by the name of the only open operation. Raises InvalidInput."""
    if given in run.operations:
        return given
    found = [key for key, o in run.operations.items() if o.intent.name == given and is_open(o)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"several operations {given} are open: {', '.join(found)}; name one")
    known = ", ".join(run.operations) or "none"
    raise InvalidInput(f"run {run.key.run} has no open operation {given!r}; it has {known}")


def renew(
    run: RunId,
    operation: Operation,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Have a side effect with a key of its own made once more, when its step runs again."""
    payload = {"operation": operation, "reason": reason}
    given = run_async(give(Settings.load(), "renew", run, payload, agent, actor_name(by), command_id, wait, data_dir))
    report(given, f"{operation} of {given.key.run} is made once more when its step runs again", as_json=as_json)


def compensate(
    run: RunId,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Undo what a run has done outside, the latest first; it stops at what fails or is unknown.

    The answer says that it began; `waybook operations RUN` shows how far it came.
    """
    given = run_async(give(Settings.load(), "compensate", run, {}, agent, actor_name(by), command_id, wait, data_dir))
    report(given, f"undoing what {given.key.run} has done", as_json=as_json)
