"""`waybook approvals`, `approve`, `reject` and `revoke`."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from waybook.cli.giving import WAIT, Actor, CommandId, Given, Patience, Reason, actor_name, giving, report
from waybook.cli.options import Agent, DataDir, Json
from waybook.cli.output import print_json, print_table, when
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.engine.approvals import open_approvals
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.projections.errors import NoReadModels
from waybook.services.bootstrap.installation import looked_at
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.history import read_history
from waybook.services.reading.models import caught_up

Which = Annotated[
    str,
    typer.Argument(metavar="RUN[/APPROVAL]", help="A run, or one of its approvals as `waybook approvals` lists them."),
]
Digest = Annotated[
    str | None,
    typer.Option("--digest", help="What you looked at; anything else is refused.", show_default=False),
]
Status = Annotated[
    str,
    typer.Option("--status", help="pending, approved, rejected, used, expired, revoked, or all."),
]
STATUSES = ("pending", "approved", "rejected", "used", "expired", "revoked")
DONE = {"approve": "approved", "reject": "rejected", "revoke": "taken back"}


def approvals(status: Status = "pending", data_dir: DataDir = None, as_json: Json = False) -> None:
    """List what waits for a decision, the longest waiting first."""
    if status != "all" and status not in STATUSES:
        raise InvalidInput(f"--status {status!r} is none of {', '.join(STATUSES)}, all")
    rows = run_async(_approvals(Settings.load(), None if status == "all" else status, data_dir))
    if as_json:
        print_json(rows)
        return
    columns = ("approval", "status", "action", "resource", "what", "deciders", "until", "by", "why")
    print_table(
        "approvals",
        columns,
        [
            (f"{r['run']}/{r['approval']}", r["status"], r["action"], r["resource"], r["summary"],
             ", ".join(r["deciders"]), when(r["expires"]), r["decided_by"], r["reason"] or r["revoked"])
            for r in rows
        ],
    )  # fmt: skip


async def _approvals(settings: Settings, status: str | None, data_dir: Path | None) -> list[dict[str, Any]]:
    async with looked_at(settings, "approvals", data_dir) as installation:
        async with caught_up(installation) as models:
            with suppress(NoReadModels):  # nothing was ever walked here
                now = installation.wiring.clock.now()
                return await models.approvals(now=now, status=status, tenant=settings.tenant)
    return []


def approve(
    which: Which,
    reason: Reason = None,
    digest: Digest = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Approve what a run asks for."""
    _decide("approve", which, reason, digest, agent, by, command_id, wait, data_dir, as_json)


def reject(
    which: Which,
    reason: Reason = None,
    digest: Digest = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Refuse what a run asks for."""
    _decide("reject", which, reason, digest, agent, by, command_id, wait, data_dir, as_json)


def revoke(
    which: Which,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Take an approval back that was asked for or given and is not used yet."""
    _decide("revoke", which, reason, None, agent, by, command_id, wait, data_dir, as_json)


def _decide(
    verb: Literal["approve", "reject", "revoke"],
    which: str,
    reason: str | None,
    digest: str | None,
    agent: str,
    by: str | None,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    run, slash, approval = which.partition("/")
    if not run or (slash and not approval):
        raise InvalidInput(f"{which!r} is no run and no RUN/APPROVAL")
    payload = {"approval": approval or None, "reason": reason, "digest": digest}
    given = run_async(_give(Settings.load(), verb, run, payload, agent, actor_name(by), command_id, wait, data_dir))
    what = given.shown["summary"] or given.shown["action"] or ""
    report(given, f"{DONE[verb]}: {given.key.run}/{given.shown['approval']} {what}".rstrip(), as_json=as_json)


async def _give(
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
    """Names what is decided on, so that nothing else is: the approval that waits now, with its digest."""
    async with giving(settings, verb, data_dir, wait) as (installation, client):
        key = await find_run(installation, run, agent)
        folded, _ = await read_history(installation.wiring.state, Codec(), key)
        name = payload["approval"] or _waiting(folded)
        found = folded.approvals.get(name) if name is not None else None
        request = found.request if found is not None else None
        if verb != "revoke" and payload["digest"] is None and found is not None and found.decided is None:
            payload["digest"] = found.request.digest
        answer = await client.give(key, verb, {**payload, "approval": name}, actor=actor, command=command_id)
        shown = {
            "approval": name,
            "action": request.action if request is not None else None,
            "resource": request.resource if request is not None else None,
            "digest": request.digest if request is not None else None,
            "summary": request.summary if request is not None else None,
            "by": actor,
        }
        return Given(key, answer, shown)


def _waiting(run: Run) -> str | None:
    """The one approval that waits; None leaves it to the walker to say why there is none, or which there are."""
    waiting = list(open_approvals(run))
    return waiting[0] if len(waiting) == 1 else None
