"""`waybook retry`: one failed run, or all that failed for one reason."""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import Progress

from waybook.cli.giving import WAIT, Actor, CommandId, Patience, Reason, actor_name, give, giving, report
from waybook.cli.options import Agent, DataDir, Json
from waybook.cli.output import err, out, print_counts, print_json, print_table
from waybook.cli.running import run_async
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RunKey
from waybook.projections.errors import NoReadModels
from waybook.services.bootstrap.settings import Settings
from waybook.services.commanding.client import NoAnswer
from waybook.services.commanding.pace import at_pace
from waybook.services.reading.models import caught_up

RATE = 20.0
REFUSED_SHOWN = 10

Which = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="A run's id, or its first characters.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Every failed run of the agent, those that failed first first.")]
Step = Annotated[str | None, typer.Option("--step", help="With --all: where this step failed.", show_default=False)]
Error = Annotated[
    str | None, typer.Option("--error", metavar="TEXT", help="With --all: whose error holds this.", show_default=False)
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="With --all: at most so many.", show_default=False)]
Rate = Annotated[float, typer.Option("--rate", min=0.1, max=1000, help="With --all: so many a second.")]
How = Annotated[
    str | None,
    typer.Option(
        "--how", metavar="WAY", show_default=False,
        help="resend: what a person approved leaves again; review: a person sees it first; redraft: it is written anew.",
    ),
]  # fmt: skip
WAYS = ("resend", "review", "redraft")
DryRun = Annotated[bool, typer.Option("--dry-run", help="With --all: only list them.")]


class Choice(msgspec.Struct, frozen=True):
    """Which failed runs, how fast, and on whose word."""

    agent: str
    actor: str
    step: str | None
    error: str | None
    limit: int | None
    rate: float
    dry_run: bool
    wait_s: float
    reason: str | None = None


def retry(
    run: Which = None,
    every: All = False,
    step: Step = None,
    error: Error = None,
    limit: Limit = None,
    rate: Rate = RATE,
    dry_run: DryRun = False,
    how: How = None,
    reason: Reason = None,
    agent: Agent = "inbox",
    by: Actor = None,
    command_id: CommandId = None,
    wait: Patience = WAIT,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Take a failed run up again now, also when its automatic retries are used up; completed steps keep their results.

    With --all every failed run, after an outage say, at a rate that the other side can bear.
    """
    narrowed = step is not None or error is not None or limit is not None or dry_run
    if (run is None) != every or (narrowed and not every) or (command_id is not None and every):
        raise InvalidInput(
            "name one run, or --all with --step, --error, --limit or --dry-run to choose among the failed"
        )
    if how is not None and (run is None or how not in WAYS):
        raise InvalidInput(f"--how is for one run: {', '.join(WAYS)}")
    if run is not None:
        payload = {"how": how, "reason": reason}
        given = run_async(
            give(Settings.load(), "retry", run, payload, agent, actor_name(by), command_id, wait, data_dir)
        )
        report(given, f"{given.key.run} is tried again", as_json=as_json)
        return
    choice = Choice(agent, actor_name(by), step, error, limit, rate, dry_run, wait, reason)
    _report_all(run_async(_all(Settings.load(), choice, data_dir)), as_json=as_json)


async def _all(settings: Settings, choice: Choice, data_dir: Path | None) -> list[dict[str, Any]]:
    async with giving(settings, "retry", data_dir, choice.wait_s) as (installation, client):
        rows: list[dict[str, Any]] = []
        async with caught_up(installation) as models:
            with suppress(NoReadModels):  # nothing was ever walked here
                rows = await models.failed(
                    agent=choice.agent, tenant=settings.tenant, step=choice.step, error=choice.error, limit=choice.limit
                )
        shown = [{"run": row["run"], "agent": row["agent"], "error": row["error_message"]} for row in rows]
        if choice.dry_run:
            return shown

        async def again(row: dict[str, Any]) -> dict[str, Any]:
            key = RunKey(row["tenant"], row["agent"], row["run"])
            try:
                answer = await client.give(key, "retry", {"reason": choice.reason}, actor=choice.actor)
            except NoAnswer as unknown:
                return {"ok": False, "reason": "no_answer", "text": str(unknown)}
            return {"ok": answer.ok, "reason": answer.reason, "text": answer.text}

        with Progress(console=err, disable=not err.is_terminal, transient=True) as progress:
            task = progress.add_task("trying again", total=len(rows))
            answers = await at_pace(rows, again, per_s=choice.rate, told=lambda n: progress.update(task, completed=n))
        return [{**row, **answer} for row, answer in zip(shown, answers, strict=True)]


def _report_all(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """Shows what became of many; a refusal ends the program with code 1."""
    refused = [row for row in rows if row.get("ok") is False]
    if as_json:
        print_json(rows)
    elif rows and "ok" not in rows[0]:
        print_table("failed", ("run", "error"), [(row["run"], row["error"]) for row in rows])
        out.print(f"{len(rows)} runs; without --dry-run they are tried again")
    else:
        if refused:
            shown = refused[:REFUSED_SHOWN]
            print_table("refused", ("run", "reason", "why"), [(r["run"], r["reason"], r["text"]) for r in shown])
        print_counts(Counter("tried again" if row["ok"] else "refused" for row in rows))
    if refused:
        raise SystemExit(1)
