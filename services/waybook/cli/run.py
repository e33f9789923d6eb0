"""`waybook run`, `waybook ingest` and `waybook up`."""

import asyncio
import signal
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from waybook.adapters.embedded.given import without_password
from waybook.cli.held import held
from waybook.cli.look import author, notes
from waybook.cli.options import DataDir, Json, MetricsPort, ModelKind, ModelName, ModelUrl, Paths
from waybook.cli.output import err, fail, out, print_counts, print_json, print_table
from waybook.cli.running import run_async
from waybook.inbox.intake.sources import Item, Skipped, read_sources
from waybook.services.bootstrap.installation import looked_at, owned, projecting
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.mail_walker import walking_mails
from waybook.services.bootstrap.main_job import Report, run_mails
from waybook.services.bootstrap.model_choice import choices
from waybook.services.bootstrap.observing import ANY_PORT, observed
from waybook.services.bootstrap.runtime import settle_memory
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.intake.starts import Starts, Submission, taken_or_refused
from waybook.services.reading.unserved import Unserved, left_behind

ANSWER_PATIENCE_S = 5.0
UNSERVED_SHOWN = 10


class Bar:
    """A progress bar on standard error; silent when that is no terminal."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=err, disable=not err.is_terminal, transient=True)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        self._task = self._progress.add_task("taking in", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def taken_in(self, count: int) -> None:
        assert self._task is not None
        self._progress.update(self._task, completed=count)

    def settled(self, count: int, total: int) -> None:
        assert self._task is not None
        self._progress.update(self._task, description="walking", completed=count, total=total)


def check_paths(paths: Iterable[Path]) -> None:
    """Ends with a usage error when a path is not there: nothing is started for a typing mistake."""
    missing = [str(p) for p in paths if not p.exists()]
    if missing:
        fail(f"there is no file or folder {', '.join(missing)}", 2)


def run(
    paths: Paths,
    data_dir: DataDir = None,
    metrics_port: MetricsPort = None,
    model: ModelKind = None,
    model_url: ModelUrl = None,
    model_name: ModelName = None,
    as_json: Json = False,
) -> None:
    """Take mails in, walk each through its steps, wait until it has ended or is held, and show where it stands.

    The servers are started for the duration, unless WAYBOOK_NATS_URL and WAYBOOK_DATABASE_URL name real ones.
    """
    check_paths(paths)
    settle_memory()
    with Bar() as bar:
        report = run_async(_run(metrics_port, (model, model_url, model_name), paths, bar, data_dir))
    print_json(report) if as_json else _print_report(report)
    named = {str(p) for p in paths if p.is_file()}
    if any(s.path in named for s in report.skipped) or (report.skipped and not (report.messages or report.duplicates)):
        raise SystemExit(1)


async def _run(
    metrics_port: int | None,
    model: tuple[str | None, str | None, str | None],
    paths: list[Path],
    bar: Bar,
    data_dir: Path | None,
) -> Report:
    settings = Settings.load().with_metrics_port(metrics_port).with_model(*model)
    choices(settings)  # what is missing is said before a server starts
    with observed(settings, [mail_agent(settings)[0]]) as observing:
        for service, address in observing.addresses.items():
            err.print(f"metrics of the {service}: {address}")
        return await run_mails(settings, read_sources(paths), bar, data_dir, observing)


def _print_report(report: Report) -> None:
    columns = ("run", "status", "hold", "from", "answer to", "subject", "notes")
    rows = [
        (m["run"], m["status"], held(m), author(m), m["answer_to"], m["subject"], notes(m)) for m in report.messages
    ]
    if rows:
        print_table("messages", columns, rows)
        print_counts(report.counts)
    if report.duplicates:
        print_table("already there", ("path", "run"), [(d.path, d.run) for d in report.duplicates])
        out.print(f"{len(report.duplicates)} messages were already there; nothing was done again for them")
    if report.skipped:
        print_table("skipped", ("path", "reason"), [(s.path, s.reason) for s in report.skipped])
    _print_unserved(report.unserved)
    out.print(f"{report.seconds:.1f} s")


def _print_unserved(runs: list[Unserved]) -> None:
    """Open runs of another version: by name as far as they fit, and what to do about them."""
    if not runs:
        return
    rows = [(one.run, one.status, one.definition) for one in runs[:UNSERVED_SHOWN]]
    print_table("no worker", ("run", "status", "definition"), rows)
    more = f", {len(runs) - len(rows)} more of them not shown" if len(runs) > len(rows) else ""
    out.print(
        f"{len(runs)} open runs began under a version of their agent whose steps, events or states are others{more}; "
        "they go on when that version runs"
    )


def ingest(paths: Paths, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Take mails in and return; a running `waybook up` walks them, or the next `waybook run` does."""
    check_paths(paths)
    taken, skipped = run_async(_ingest(Settings.load(), paths, data_dir))
    rows = [
        {"path": s.path, "run": s.key.run, "already": s.answer.already if s.answer is not None else None} for s in taken
    ]
    if as_json:
        print_json({"taken": rows, "skipped": skipped})
    else:
        print_table("taken in", ("path", "run", "already there"), [(r["path"], r["run"], r["already"]) for r in rows])
        if skipped:
            print_table("skipped", ("path", "reason"), [(s.path, s.reason) for s in skipped])
    if skipped and not taken:
        raise SystemExit(1)


async def _ingest(
    settings: Settings, paths: list[Path], data_dir: Path | None
) -> tuple[list[Submission], list[Skipped]]:
    taken: list[Submission] = []
    skipped: list[Skipped] = []
    async with looked_at(settings, "ingest", data_dir) as installation:
        await ensure_topology(
            installation.addresses.nats_url,
            ack_wait_ms=round(settings.ack_wait_s * 1000),
            inbox_prefix=settings.nats_inbox_prefix,
        )
        wiring = installation.wiring
        starts = Starts(
            wiring.connection,
            wiring.commands,
            wiring.objects,
            wiring.clock,
            tenant=settings.tenant,
            mailbox=settings.mailbox,
            actor="ingest",
            own_addresses=settings.never_answered,
        )
        items: Iterable[Item | Skipped] = read_sources(paths)
        async for one in starts.submit(items):
            taken.append(one) if isinstance(one, Submission) else skipped.append(one)
        await starts.until_answered(ANSWER_PATIENCE_S)
    return taken_or_refused(taken, skipped)


def up(
    data_dir: DataDir = None,
    metrics_port: MetricsPort = None,
    model: ModelKind = None,
    model_url: ModelUrl = None,
    model_name: ModelName = None,
) -> None:
    """Run everything until Ctrl-C: servers, walker with scheduler, projector, each with its metrics (by default on free ports)."""
    settle_memory()
    run_async(_up(metrics_port, (model, model_url, model_name), data_dir))


async def _up(
    metrics_port: int | None, model: tuple[str | None, str | None, str | None], data_dir: Path | None
) -> None:
    settings = Settings.load().with_metrics_port(metrics_port).with_model(*model)
    choices(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        observing = stack.enter_context(observed(settings, [mail_agent(settings)[0]], otherwise=ANY_PORT))
        installation = await stack.enter_async_context(owned(settings, "up", data_dir, observing.hook))
        await stack.enter_async_context(projecting(installation, observing))
        walker = await stack.enter_async_context(walking_mails(installation, observing, scheduler=True))
        out.print(f"nats-server  {without_password(installation.addresses.nats_url)}")
        out.print(f"PostgreSQL   {without_password(installation.database_url)}")
        _print_unserved(await left_behind(installation, tuple(walker.definitions)))
        for service, address in observing.addresses.items():
            out.print(f"{'metrics':<13}{address} ({service})")
        out.print("walking; Ctrl-C stops")
        await stop.wait()
        out.print("stopping")
