"""`waybook schedules`: when runs of an agent begin by themselves."""

import time
from typing import Annotated

import typer

from waybook.cli.agents import Named
from waybook.cli.options import Json
from waybook.cli.output import fail, out, print_json, print_table
from waybook.engine.times import iso
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.loading import load_agent

Count = Annotated[int, typer.Option("--count", min=1, max=100, help="How many times of each schedule.")]


def schedules(name: Named, count: Count = 3, as_json: Json = False) -> None:
    """List the schedules of an agent and the next times of each (UTC)."""
    try:
        agent = load_agent(name)
    except InvalidInput as error:
        fail(str(error), 2)
    rows = []
    for one in agent.schedules:
        times: list[str] = []
        at: int | None = time.time_ns() // 1_000_000
        while len(times) < count and at is not None and (at := one.next_after(at)) is not None:
            times.append(iso(at))
        rows.append({"name": one.name, "cron": one.cron, "zone": one.zone, "missed": one.missed, "next": times})
    if as_json:
        print_json(rows)
    elif not rows:
        out.print(f"{name} has no schedules", markup=False)
    else:
        shown = [(r["name"], r["cron"], r["zone"], r["missed"], " ".join(r["next"])) for r in rows]
        print_table("schedules", ("name", "cron", "zone", "missed", "next"), shown)
