"""What commands of people share: who gives them, how the answer is shown, and the exit code."""

import getpass
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from waybook.cli.output import fail, out, print_json, print_table
from waybook.cli.runs import find_run
from waybook.events.command import Answer
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.installation import Installation, looked_at
from waybook.services.bootstrap.settings import Settings
from waybook.services.commanding.client import PATIENCE_S, CommandClient

MOST_NAME = 200

Reason = Annotated[str | None, typer.Option("--reason", help="Why; it is stored with the decision.")]
NeededReason = Annotated[str, typer.Option("--reason", help="Why; it is stored with it.")]
Actor = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", envvar="WAYBOOK_ACTOR", help="Who decides; by default the user of this system.",
        show_default=False,
    ),
]  # fmt: skip
CommandId = Annotated[
    str | None,
    typer.Option(
        "--command-id", metavar="ID", help="Repeats an earlier command: it is done at most once.", show_default=False
    ),
]
Patience = Annotated[float, typer.Option("--wait", min=0.1, metavar="SECONDS", help="How long to wait for the answer.")]
WAIT = PATIENCE_S


def actor_name(given: str | None) -> str:
    """Who gives a command. Raises InvalidInput for a name that cannot be written."""
    name = given or getpass.getuser()
    if not name.isprintable() or not 0 < len(name) <= MOST_NAME:
        raise InvalidInput(f"a name has 1 to {MOST_NAME} printable characters")
    return name


class Given(msgspec.Struct, frozen=True):
    """A command that was answered: for which run, and what else is to be shown of it."""

    key: RunKey
    answer: Answer
    shown: dict[str, Any] = {}


@asynccontextmanager
async def giving(
    settings: Settings, role: str, data_dir: Path | None, wait_s: float
) -> AsyncIterator[tuple[Installation, CommandClient]]:
    """An installation and a client for the time of the block. Raises what `looked_at` raises."""
    async with looked_at(settings, role, data_dir) as installation:
        wiring = installation.wiring
        client = CommandClient(
            wiring.connection, wiring.commands, wiring.state, wiring.clock, issuer="cli", patience_s=wait_s
        )
        yield installation, client


async def give(
    settings: Settings,
    verb: str,
    run: str,
    payload: dict[str, Any],
    agent: str,
    actor: str,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
) -> Given:
    """One command to one run, which may be named by its first characters. Raises as `giving` and `find_run`."""
    async with giving(settings, verb, data_dir, wait) as (installation, client):
        key = await find_run(installation, run, agent)
        return Given(key, await client.give(key, verb, payload, actor=actor, command=command_id))


def report(given: Given, done: str, *, as_json: bool) -> None:
    """Shows an answer; a refusal ends the program with code 1."""
    answer = given.answer
    if as_json:
        print_json(_row(given))
        if not answer.ok:
            raise SystemExit(1)
        return
    if not answer.ok:
        fail(f"refused ({answer.reason}): {answer.text}")
    out.print(f"{done}; it was so before" if answer.already else done, markup=False)


def report_many(given: Sequence[Given], done: str, *, as_json: bool) -> None:
    """One outcome each; any refusal ends the program with code 1."""
    if as_json:
        print_json([_row(one) for one in given])
    else:
        rows = [
            (one.key.run, done if one.answer.ok else f"refused ({one.answer.reason})", one.answer.text) for one in given
        ]
        print_table("outcomes", ("run", "outcome", "why"), rows)
    if not all(one.answer.ok for one in given):
        raise SystemExit(1)


def _row(given: Given) -> dict[str, Any]:
    answer = given.answer
    return {
        "ok": answer.ok, "run": given.key.run, "agent": given.key.agent, "command": answer.command,
        "version": answer.version, "already": answer.already, "reason": answer.reason, "text": answer.text,
        **given.shown,
    }  # fmt: skip
