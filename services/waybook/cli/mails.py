"""`waybook release`, `undo`, `save`, `redraft` and `block`: a person's word on a mail."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from waybook.cli.giving import WAIT, Actor, CommandId, Patience, Reason, actor_name, giving, report
from waybook.cli.giving import Given as Answered
from waybook.cli.options import DataDir, Json, RunId
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.events.errors import InvalidInput
from waybook.inbox import events as ev
from waybook.services.bootstrap.settings import Settings

AGENT = "inbox"
Text = Annotated[
    str | None,
    typer.Option("--text", help="The reply, as it shall leave; without it, standard input.", show_default=False),
]
IntentNumber = Annotated[
    int | None,
    typer.Option("--intent", min=1, help="Only the part for this one, as `show` numbers them.", show_default=False),
]
Subject = Annotated[str | None, typer.Option("--subject", help="Another subject.", show_default=False)]


def release(
    run: RunId,
    reason: Reason = None,
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Let a mail out of quarantine: it is walked anew, and never answered unattended."""
    _say(run, ev.MailReleased.__name__, {"reason": reason}, "released", by, command_id, wait, data_dir, as_json=as_json)


def undo(
    run: RunId,
    reason: Reason = None,
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Call an approved reply back while its undo window is open; it waits for a decision again."""
    body = {"reason": reason} if reason else {}
    _say(run, ev.SendCancelled.__name__, body, "called back", by, command_id, wait, data_dir, as_json=as_json)


def save(
    run: RunId,
    text: Text = None,
    subject: Subject = None,
    reason: Reason = None,
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Put a text of your own in the draft's place. An approval that was given does not cover it."""
    written = text if text is not None else sys.stdin.read()
    if not written.strip():
        raise InvalidInput("an empty text is no reply")
    body = {"text": written, "subject": subject, "reason": reason}
    _say(run, ev.DraftSaved.__name__, body, "saved", by, command_id, wait, data_dir, as_json=as_json)


def redraft(
    run: RunId,
    intent: IntentNumber = None,
    reason: Reason = None,
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Have the draft written anew, or the part of it for one of several things that the mail asks for."""
    body = {"intent": intent, "reason": reason}
    _say(
        run, ev.RedraftAsked.__name__, body, "given back to be drafted", by, command_id, wait, data_dir, as_json=as_json
    )


def block(
    run: RunId,
    reason: Reason = None,
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Archive a mail because of its sender; a reply that waits to leave does not leave."""
    body = {"reason": reason} if reason else {}
    _say(run, ev.SenderBlocked.__name__, body, "archived", by, command_id, wait, data_dir, as_json=as_json)


def _say(
    run: str,
    event: str,
    body: dict[str, Any],
    done: str,
    by: str | None,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
    *,
    as_json: bool,
) -> None:
    actor = actor_name(by)
    given = run_async(_give(Settings.load(), run, event, body, actor, command_id, wait, data_dir))
    report(given, f"{given.key.run} was {done}" if event != "DraftSaved" else f"the reply was {done}", as_json=as_json)


async def _give(
    settings: Settings,
    run: str,
    event: str,
    body: dict[str, Any],
    actor: str,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
) -> Answered:
    async with giving(settings, "signal", data_dir, wait) as (installation, client):
        key = await find_run(installation, run, AGENT)
        if event == ev.DraftSaved.__name__:
            body = {**body, "saved_at": installation.wiring.clock.now()}
        payload = {"event": event, "body": {**body, "by": actor}, "request": None}
        answer = await client.give(key, "signal", payload, actor=actor, command=command_id)
        return Answered(key, answer, {"by": actor})
