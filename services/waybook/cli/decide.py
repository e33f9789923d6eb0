"""`waybook approvals`, `approve`, `reject` and `revoke`."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from waybook.cli.giving import WAIT, Actor, CommandId, Given, Patience, Reason, actor_name, giving, report, report_many
from waybook.cli.options import Agent, DataDir, Json
from waybook.cli.output import print_json, print_table, when
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.engine.approvals import open_approvals
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RunKey
from waybook.projections.errors import NoReadModels
from waybook.services.bootstrap.installation import Installation, looked_at
from waybook.services.bootstrap.settings import Settings
from waybook.services.commanding.bulk import MOST, checked
from waybook.services.commanding.client import CommandClient
from waybook.services.reading.history import read_history
from waybook.services.reading.models import caught_up

Which = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN[/APPROVAL]...",
        help=f"Runs, or approvals as `waybook approvals` lists them; at most {MOST} at once.",
    ),
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
Verb = Literal["approve", "reject", "revoke"]
DONE: dict[Verb, str] = {"approve": "approved", "reject": "rejected", "revoke": "taken back"}


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
    word = Word("approve", agent, actor_name(by), reason, digest, command_id, wait)
    _decide(which, word, data_dir, as_json=as_json)


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
    word = Word("reject", agent, actor_name(by), reason, digest, command_id, wait)
    _decide(which, word, data_dir, as_json=as_json)


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
    word = Word("revoke", agent, actor_name(by), reason, None, command_id, wait)
    _decide(which, word, data_dir, as_json=as_json)


class Word(msgspec.Struct, frozen=True):
    """A decision as it was given at the command line."""

    verb: Verb
    agent: str
    actor: str
    reason: str | None = None
    digest: str | None = None
    command: str | None = None
    wait_s: float = WAIT


def _decide(which: list[str], word: Word, data_dir: Path | None, *, as_json: bool) -> None:
    chosen = [_parsed(one) for one in checked(which)]
    if len(chosen) > 1 and (word.command is not None or word.digest is not None):
        raise InvalidInput("--command-id and --digest are about one approval; name one run")
    given = run_async(_give_all(Settings.load(), chosen, word, data_dir))
    if len(given) > 1:
        report_many(given, DONE[word.verb], as_json=as_json)
        return
    (one,) = given
    what = one.shown["summary"] or one.shown["action"] or ""
    report(one, f"{DONE[word.verb]}: {one.key.run}/{one.shown['approval']} {what}".rstrip(), as_json=as_json)


def _parsed(which: str) -> tuple[str, str | None]:
    run, slash, approval = which.partition("/")
    if not run or (slash and not approval):
        raise InvalidInput(f"{which!r} is no run and no RUN/APPROVAL")
    return run, approval or None


async def _give_all(
    settings: Settings, chosen: list[tuple[str, str | None]], word: Word, data_dir: Path | None
) -> list[Given]:
    async with giving(settings, word.verb, data_dir, word.wait_s) as (installation, client):
        keys = [await find_run(installation, run, word.agent) for run, _ in chosen]
        names = [approval for _, approval in chosen]
        return [await _give(installation, client, k, name, word) for k, name in zip(keys, names, strict=True)]


async def _give(
    installation: Installation, client: CommandClient, key: RunKey, approval: str | None, word: Word
) -> Given:
    """Names what is decided on, so that nothing else is: the approval that waits now, with its digest."""
    folded, _ = await read_history(installation.wiring.state, Codec(), key)
    name = approval or _waiting(folded)
    found = folded.approvals.get(name) if name is not None else None
    digest = word.digest
    if digest is None and word.verb != "revoke" and found is not None and found.decided is None:
        digest = found.request.digest
    payload = {"approval": name, "reason": word.reason, "digest": digest}
    asked = (approval, word.reason, word.digest)
    answer = await client.give(key, word.verb, payload, actor=word.actor, command=word.command, intention=asked)
    shown: dict[str, Any] = {"approval": name, "by": word.actor}
    for field in ("action", "resource", "digest", "summary"):
        shown[field] = getattr(found.request, field) if found is not None else None
    return Given(key, answer, shown)


def _waiting(run: Run) -> str | None:
    """The one approval that waits; None leaves it to the walker to say why there is none, or which there are."""
    waiting = list(open_approvals(run))
    return waiting[0] if len(waiting) == 1 else None
