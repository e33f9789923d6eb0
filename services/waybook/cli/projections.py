"""`waybook projections status|rebuild|verify`: the read models against the log."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from waybook.adapters.embedded.servers import Given, servers_for_reading
from waybook.adapters.nats.connection import Connection
from waybook.cli.output import err, print_json, print_table
from waybook.cli.running import run_async
from waybook.projections.copy import ProgressCallback
from waybook.projections.rebuild import Rebuilt, rebuild
from waybook.projections.status import ReadModelStatus, status
from waybook.projections.verify import Difference, Verified, verify
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.wiring import nats_settings

projections_app = typer.Typer(no_args_is_help=True, help="The read models in PostgreSQL, and the log they come from.")

NatsUrl = Annotated[
    str | None, typer.Option(help="A real server (WAYBOOK_NATS_URL); by default the data directory's own.")
]
DatabaseUrl = Annotated[
    str | None, typer.Option(help="A real PostgreSQL (WAYBOOK_DATABASE_URL); by default the data directory's own.")
]
DataDir = Annotated[Path | None, typer.Option(help="The data directory (WAYBOOK_DATA_DIR), where no server is given.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


class _Target(msgspec.Struct, frozen=True):
    """The options that say which installation is meant; what they leave out is as configured."""

    nats_url: str | None
    database_url: str | None
    data_dir: Path | None

    @asynccontextmanager
    async def reached(self, role: str) -> AsyncIterator[tuple[Connection, str]]:
        """A connection to NATS, and the database's address, for the time of the block."""
        settings = Settings.load()
        given = Given(self.nats_url or settings.nats_url, None, self.database_url or settings.database_url)
        async with servers_for_reading(settings.directory(self.data_dir), role, given) as addresses:
            nats = nats_settings(addresses.nats_url, role, settings.nats_inbox_prefix)
            async with await Connection.open(nats) as connection:
                yield connection, addresses.database_url or ""


@projections_app.command("status")
def status_command(
    nats_url: NatsUrl = None, database_url: DatabaseUrl = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Shows how far the read models are behind the log.

    Exit code 1 when there are none, when the log does not reach them any more, or when a rebuild is due.
    """
    found = run_async(_status(_Target(nats_url, database_url, data_dir)))
    if json:
        print_json({**msgspec.to_builtins(found), "ok": found.sound})
    else:
        _show_status(found)
    _end(ok=found.sound)


@projections_app.command("rebuild")
def rebuild_command(
    nats_url: NatsUrl = None, database_url: DatabaseUrl = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Builds all read models anew from the log, beside the live ones, and swaps them at the end."""
    began = time.monotonic()
    done = run_async(_rebuild(_Target(nats_url, database_url, data_dir), quiet=json))
    seconds = round(time.monotonic() - began, 3)
    if json:
        print_json({**msgspec.to_builtins(done), "seconds": seconds})
    else:
        typer.echo(f"rebuilt from {done.commits} commits in {seconds:.1f} s")


@projections_app.command("verify")
def verify_command(
    nats_url: NatsUrl = None, database_url: DatabaseUrl = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Folds the log and compares the read models with it, row by row. Exit code 1 when a row differs."""
    found = run_async(_verify(_Target(nats_url, database_url, data_dir), quiet=json))
    if json:
        print_json({**msgspec.to_builtins(found), "ok": found.differing == 0})
    else:
        _show_verified(found)
    _end(ok=found.differing == 0)


def _end(*, ok: bool) -> None:
    if not ok:
        raise typer.Exit(1)


async def _status(target: _Target) -> ReadModelStatus:
    async with target.reached("projections status") as (nats, database_url):
        return await status(nats, database_url)


async def _rebuild(target: _Target, *, quiet: bool) -> Rebuilt:
    async with target.reached("projections rebuild") as (nats, database_url):
        with _bar("rebuilding", quiet=quiet) as progress:
            return await rebuild(nats, database_url, progress=progress)


async def _verify(target: _Target, *, quiet: bool) -> Verified:
    async with target.reached("projections verify") as (nats, database_url):
        with _bar("reading the log", quiet=quiet) as progress:
            return await verify(nats, database_url, progress=progress)


@contextmanager
def _bar(title: str, *, quiet: bool) -> Iterator[ProgressCallback]:
    """A bar on standard error when that is a terminal; the yielded function says how far it is."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show_status(found: ReadModelStatus) -> None:
    columns = ("stream", "applied", "last", "commits behind", "seconds behind", "projector")
    rows: list[tuple[Any, ...]] = [
        (
            s.stream,
            s.checkpoint,
            "missing" if s.last_sequence is None else s.last_sequence,
            s.lag_events,
            s.lag_seconds,
            "active" if s.active else "none",
        )
        for s in found.streams
    ]
    print_table(f"read models, generation {found.generation}", columns, rows)
    if found.outdated:
        typer.echo("filled by another version of Waybook: run `waybook projections rebuild`")
    for s in found.streams:
        if (s.last_sequence or 0) < s.checkpoint:
            typer.echo(f"{s.stream} does not reach what was applied: commits were lost; restore it, or rebuild")


def _show_verified(found: Verified) -> None:
    if found.differences:
        print_table("differences", ("table", "row", "", "column", "stored", "by the log"), _difference_rows(found))
    more = found.differing - len(found.differences)
    if more:
        typer.echo(f"... and {more} more")
    typer.echo(f"{found.differing} of {found.rows} rows differ from what {found.commits} commits say")


def _difference_rows(found: Verified) -> Iterator[tuple[Any, ...]]:
    for difference in found.differences:
        place: tuple[str, str, str] = (difference.table, _key(difference), difference.kind)
        if not difference.columns:
            yield (*place, "", "", "")
        for name, column in difference.columns.items():
            yield (*place, name, _short(column.stored), _short(column.expected))
            place = ("", "", "")


def _key(difference: Difference) -> str:
    return " ".join(difference.key.values())


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
