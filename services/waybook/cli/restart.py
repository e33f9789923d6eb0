"""`waybook restart`: a run walks from its start event again."""

from pathlib import Path
from typing import Annotated

import typer

from waybook.cli.giving import (
    WAIT,
    Actor,
    CommandId,
    Given,
    Patience,
    Reason,
    actor_name,
    giving,
    report,
)
from waybook.cli.options import Agent, DataDir, Json, RunId
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.history import read_history

Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="STEP", help="A step whose results stand in the new walk, too; repeatable."),
]


def restart(
    run: RunId,
    keep: Keep = None,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Walk a run from its start event again: every step runs anew but those that are kept; what is open is given up.

    Answers that came from outside stand. To take up a failed run where it stopped, `retry` does.
    """
    given = run_async(
        _restart(
            Settings.load(), run, tuple(keep or ()), reason, agent, actor_name(by), command_id, wait, data_dir
        )
    )  # fmt: skip
    report(given, f"{given.key.run} walks from its beginning again", as_json=as_json)


async def _restart(
    settings: Settings,
    run: str,
    steps: tuple[str, ...],
    reason: str | None,
    agent: str,
    actor: str,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
) -> Given:
    async with giving(settings, "restart", data_dir, wait) as (installation, client):
        key = await find_run(installation, run, agent)
        keep: list[str] = []
        if steps:
            folded, _ = await read_history(installation.wiring.state, Codec(), key)
            keep = kept_actions(folded, steps)
        payload = {"keep": keep, "reason": reason or "restarted by a person"}
        asked = (steps, reason)  # which actions these are changes with the walk
        answer = await client.give(key, "restart", payload, actor=actor, command=command_id, intention=asked)
        return Given(key, answer)


def kept_actions(run: Run, steps: tuple[str, ...]) -> list[str]:
    """The actions that completed these steps in the run's present walk. Raises InvalidInput for a step without any."""
    newest = [run.actions[a] for key, a in run.executions.items() if key.startswith(f"{run.walk}:")]
    completed = [a for a in newest if a.status == "completed"]
    for step in steps:
        if not any(a.step == step for a in completed):
            names = ", ".join(dict.fromkeys(a.step for a in completed)) or "none"
            raise InvalidInput(f"{step} has no result that could be kept; steps with results: {names}")
    return [a.id for a in completed if a.step in steps]
