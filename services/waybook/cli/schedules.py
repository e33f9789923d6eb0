"""`waybook schedules`: when runs of an agent begin by themselves, and what became of the last of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from waybook.agents.definition import define
from waybook.agents.errors import DefinitionError
from waybook.cli.agents import Named
from waybook.cli.options import DataDir, Json
from waybook.cli.output import fail, out, print_json, print_table
from waybook.cli.running import run_async
from waybook.engine.times import iso
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.clock import SystemClock
from waybook.services.bootstrap.installation import looked_at
from waybook.services.bootstrap.loading import load_agent
from waybook.services.bootstrap.settings import Settings
from waybook.services.scheduler.recurring import Planned, planned
from waybook.services.walker.lifecycle import Lifecycle

NO_RUN = "no run"
"""Where a time began none: it was missed and dropped, or the schedule is newer."""

Count = Annotated[int, typer.Option("--count", min=1, max=100, help="How many times of each schedule.")]
Runs = Annotated[
    bool, typer.Option("--runs", help="Show the last times as well, and how the run of each stands; needs the servers.")
]


class Past(msgspec.Struct, frozen=True):
    """A time of a schedule that has come, the id of its run, and the run's state, or that there is none."""

    at: str
    run: str
    state: str


def schedules(
    name: Named, count: Count = 3, runs: Runs = False, data_dir: DataDir = None, as_json: Json = False
) -> None:
    """List the schedules of an agent and the next times of each (UTC); with --runs the last runs of each."""
    settings = Settings.load()
    try:
        plans = planned(settings.tenant, [define(load_agent(name))])
    except (InvalidInput, DefinitionError) as error:
        fail(str(error), 2)
    now = SystemClock().now()
    past = run_async(_past(settings, plans, now, count, data_dir)) if runs and plans else None
    rows = []
    for number, plan in enumerate(plans):
        one = plan.schedule
        row = {
            "name": one.name,
            "cron": one.cron,
            "zone": one.zone,
            "missed": one.missed,
            "next": _next(plan, now, count),
        }
        rows.append(row if past is None else {**row, "last": past[number]})
    if as_json:
        print_json(rows)
    elif not plans:
        out.print(f"{name} has no schedules", markup=False)
    else:
        _show(plans, now, count, past)


def _next(plan: Planned, now: int, count: int) -> list[str]:
    times: list[str] = []
    at: int | None = now
    while len(times) < count and at is not None and (at := plan.schedule.next_after(at)) is not None:
        times.append(iso(at))
    return times


async def _past(
    settings: Settings, plans: Sequence[Planned], now: int, count: int, data_dir: Path | None
) -> list[list[Past]]:
    """For each schedule its last times, the latest first, as the log knows their runs."""
    async with looked_at(settings, "schedules", data_dir) as installation:
        lifecycle = Lifecycle(installation.wiring.state, Codec(), installation.wiring.clock, "cli")
        found = []
        for plan in plans:
            rows = []
            for at in reversed(plan.schedule.last(now, count)):
                run = await lifecycle.load(plan.run(at), None)
                rows.append(Past(iso(at), plan.run(at).run, run.state if run is not None else NO_RUN))
            found.append(rows)
        return found


def _show(plans: Sequence[Planned], now: int, count: int, past: list[list[Past]] | None) -> None:
    schedules = [plan.schedule for plan in plans]
    times = [" ".join(_next(plan, now, count)) for plan in plans]
    rows = [(s.name, s.cron, s.zone, s.missed, t) for s, t in zip(schedules, times, strict=True)]
    print_table("schedules", ("name", "cron", "zone", "missed", "next"), rows)
    if past is not None:
        last = [(s.name, p.at, p.run, p.state) for s, of in zip(schedules, past, strict=True) for p in of]
        print_table("last times", ("name", "time", "run", "state"), last)
