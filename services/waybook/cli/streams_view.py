"""How plans, reports and probes look: tables for people, one JSON document for programs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import typer
from rich.progress import Progress

from waybook.adapters.nats.probes import ProbeResult
from waybook.adapters.nats.topology import Change, Finding, Plan, Report
from waybook.adapters.nats.topology.difference import show
from waybook.cli.output import err, print_json, print_table


class ChangeRow(msgspec.Struct, frozen=True):
    """A change as `--json` shows it."""

    name: str
    action: str
    differences: list[Finding]
    advice: str


def show_plan(plan: Plan, *, json: bool, done: bool, left: Sequence[Finding] = ()) -> None:
    """`left`: what still differs after an apply."""
    if json:
        print_json({"changes": [_row(change) for change in plan.changes], "empty": plan.empty, "left": left})
        return
    changes = [change for change in plan.changes if change.action != "same"]
    if changes:
        details = ("setting", "declared", "stored", "note") if any(change.differences for change in changes) else ()
        rows = [row for change in changes for row in _table_rows(change, done=done)]
        print_table("changes", ("name", "action", *details), rows)
    same = len(plan.changes) - len(changes)
    typer.echo(f"{len(changes)} {'changed' if done else 'to change'}, {same} as declared")
    for finding in left:
        typer.echo(f"still different: {finding}")


def show_report(report: Report, *, json: bool) -> None:
    """The findings, then a line for the comparison and one for the sync."""
    if json:
        print_json({**msgspec.to_builtins(report), "ok": report.ok})
        return
    if report.findings:
        rows = [(f.name, f.field, f.declared, f.stored, f.breaks or "nothing") for f in report.findings]
        print_table("differences", ("name", "setting", "declared", "stored", "breaks"), rows)
    breaking, harmless = len(report.breaking), len(report.findings) - len(report.breaking)
    typer.echo(
        f"nats-server {report.server}: {report.checked} streams, buckets and consumers compared, "
        f"{breaking} breaking and {harmless} harmless differences"
    )
    typer.echo(f"sync always: {report.sync.verdict} ({report.sync.detail})")


def show_probes(results: Sequence[ProbeResult], *, json: bool) -> None:
    """One row a probe; a deviation shows both answers."""
    if json:
        print_json({"probes": results, "ok": all(result.ok for result in results)})
        return
    rows = []
    for result in results:
        answer = result.seen if result.ok else f"{result.seen} (expected: {result.expected})"
        note = f" ({result.note})" if result.note else ""
        rows.append((result.id, result.question, "ok" if result.ok else "DEVIATES", answer + note))
    print_table("probes", ("probe", "question", "", "answer"), rows)
    typer.echo(f"{sum(result.ok for result in results)} of {len(results)} answers as expected")


@contextmanager
def progress(total: int, title: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A bar on standard error when that is a terminal; the yielded function moves it by one."""
    with Progress(console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda name: bar.update(task, advance=1, description=f"{title} {name}")


def _row(change: Change) -> ChangeRow:
    differences = [
        Finding(change.name, d.field, show(d.field, d.declared), show(d.field, d.stored), d.breaks)
        for d in change.differences
    ]
    return ChangeRow(change.name, change.action, differences, change.advice)


def _table_rows(change: Change, *, done: bool) -> Iterator[tuple[str, ...]]:
    action = {"create": "created", "update": "updated"}.get(change.action, change.action) if done else change.action
    if not change.differences:
        yield change.name, action
    for number, finding in enumerate(_row(change).differences):
        name, verb, note = (change.name, action, change.advice) if number == 0 else ("", "", "")
        yield name, verb, finding.field, finding.declared, finding.stored, note
