"""`waybook lint`, `graph` and `start`: agents of your own."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from waybook.adapters.embedded.errors import DataDirectoryInUse
from waybook.agents import Agent, check
from waybook.agents.findings import Finding
from waybook.agents.mermaid import mermaid
from waybook.agents.picture import Picture, picture
from waybook.agents.svg import svg
from waybook.cli.giving import giving
from waybook.cli.options import DataDir, Json
from waybook.cli.output import err, fail, out, print_json
from waybook.cli.passed_over import passed_over_lines
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.cli.ways_out import ways_out
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.agent_job import AgentRun, ask_and_wait, start_and_wait, start_payload
from waybook.services.bootstrap.installation import looked_at, owned
from waybook.services.bootstrap.loading import load_agent
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.history import read_history

Named = Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="An agent's class: MODULE:AGENT or FILE.py:AGENT.")]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")]
Svg = Annotated[bool, typer.Option("--svg", help="Write SVG instead of Mermaid.")]
Painted = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="Paint this run onto it.", show_default=False)
]
Data = Annotated[str, typer.Option("--data", metavar="JSON", help="The start event's fields.")]
Config = Annotated[str, typer.Option("--config", metavar="JSON", help="The configuration of the run.")]
StartName = Annotated[
    str | None, typer.Option("--event", metavar="EVENT", help="Which start event, where there are several.")
]
NewRun = Annotated[
    str | None, typer.Option("--run", metavar="ID", help="An id of your own; one that is there goes on.")
]
Within = Annotated[float, typer.Option("--wait", min=0.1, metavar="SECONDS", help="How long to wait for an end.")]


def lint(name: Named, strict: Strict = False, as_json: Json = False) -> None:
    """Check an agent before its first run: 0 it can run, 1 it cannot, 2 there is no such agent."""
    findings = check(_agent(name))
    errors = [f for f in findings if f.level == "error" or strict]
    if as_json:
        print_json({"agent": name, "ok": not errors, "findings": [_as_json(f) for f in findings]})
    elif findings:
        for finding in findings:
            out.print(str(finding), markup=False, soft_wrap=True)
    else:
        out.print(f"{name}: nothing to say", markup=False)
    if errors:
        raise SystemExit(1)


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "level": finding.level,
        "message": finding.message,
        "agent": finding.agent,
        "step": finding.step,
        "parameter": finding.parameter,
        "file": finding.file,
        "line": finding.line,
    }


def _agent(name: str) -> type[Agent]:
    try:
        return load_agent(name)
    except InvalidInput as error:
        fail(str(error), 2)


def graph(
    name: Named, run: Painted = None, as_svg: Svg = False, data_dir: DataDir = None, as_json: Json = False
) -> None:
    """Draw an agent: its steps and the events between them, as Mermaid, SVG or JSON."""
    agent = _agent(name)
    drawn = picture(agent)
    if run is not None:
        drawn = picture(agent, run_async(_run(Settings.load(), drawn, run, data_dir)))
    if as_json:
        print_json(msgspec.to_builtins(drawn))
        return
    typer.echo(svg(drawn) if as_svg else mermaid(drawn), nl=False)


async def _run(settings: Settings, drawn: Picture, run: str, data_dir: Path | None) -> Run:
    async with looked_at(settings, "graph", data_dir) as installation:
        key = await find_run(installation, run, drawn.agent)
        return (await read_history(installation.wiring.state, Codec(), key))[0]


def start(
    name: Named,
    data: Data = "{}",
    event: StartName = None,
    config: Config = "{}",
    run: NewRun = None,
    wait: Within = 60.0,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Start a run of an agent of your own, and wait until it has ended or waits for somebody."""
    agent = _agent(name)
    for finding in check(agent):
        err.print(str(finding), markup=False, soft_wrap=True)
    payload = start_payload(agent, event, _object("--data", data), _object("--config", config))
    told: AgentRun | None = None
    with suppress(KeyboardInterrupt):
        told = run_async(_start(Settings.load(), agent, payload, run, wait, data_dir))
    if told is None:
        return
    if as_json:
        print_json(msgspec.to_builtins(told))
    else:
        _show(told)
    if told.state == "failed":
        raise SystemExit(1)


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        fail(f"{option} is no JSON object: {error}", 2)


async def _start(
    settings: Settings, agent: type[Agent], payload: Any, run: str | None, wait: float, data_dir: Path | None
) -> AgentRun:
    if settings.nats_url is None:
        with suppress(DataDirectoryInUse):
            async with owned(settings, "start", data_dir) as installation:
                return await start_and_wait(installation, agent, payload, run, wait)
    async with giving(settings, "start", data_dir, wait) as (installation, client):
        return await ask_and_wait(installation, client, agent, payload, run, wait)


def _show(told: AgentRun) -> None:
    out.print(f"run    {told.run}", markup=False)
    out.print(f"state  {told.state}", markup=False)
    out.print(f"next   {told.next_move}", markup=False)
    for request in told.requests:
        if request.agent is not None:
            text = (
                f"asks   agent {request.agent} on {request.name}; it answers when a walker carries it: WAYBOOK_AGENTS"
            )
            out.print(text, markup=False, soft_wrap=True)
    if told.why is not None:
        for line in ways_out(told.run, told.agent, told.why):
            out.print(line, markup=False, soft_wrap=True)
    if told.error is not None:
        out.print(f"error  {told.error}", markup=False, soft_wrap=True)
    for line in passed_over_lines(told.passed_over):
        out.print(line, markup=False, soft_wrap=True)
    if told.reason is not None:
        out.print(f"why    {told.reason}", markup=False)
    if told.stop is not None:
        out.print(f"stop   {told.stop} {msgspec.json.encode(told.result).decode()}", markup=False, soft_wrap=True)
