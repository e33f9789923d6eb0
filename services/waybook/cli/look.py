"""`waybook messages`, `show`, `actions` and `why`."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from waybook.adapters.nats.timers import NatsTimers
from waybook.cli.giving import Actor, actor_name
from waybook.cli.held import held
from waybook.cli.options import Agent, DataDir, Json, RunId
from waybook.cli.output import out, print_json, print_table, when
from waybook.cli.passed_over import passed_over_lines
from waybook.cli.running import run_async
from waybook.cli.runs import find_run, is_class
from waybook.cli.strangers import shown
from waybook.cli.ways_out import ways_out
from waybook.engine.hold import PassedOver, Why
from waybook.engine.hold import why as explain
from waybook.engine.ports import lane_consumer
from waybook.engine.run import titled
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput, TerminalError
from waybook.events.subjects import RunKey, state_subject
from waybook.inbox.remarks import DATE_OFF
from waybook.inbox.starting import RAW
from waybook.inbox.table import STATES
from waybook.projections.errors import NoReadModels
from waybook.services.bootstrap.agent_job import on_grid, own_agents
from waybook.services.bootstrap.installation import Installation, looked_at
from waybook.services.bootstrap.loading import load_agent
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.access import note_access
from waybook.services.reading.dead import last_given_up
from waybook.services.reading.history import Entry, UnknownRun, read_history
from waybook.services.reading.models import caught_up

Status = Annotated[str | None, typer.Option("--status", help=f"Only messages in this state: {', '.join(STATES)}.")]
Raw = Annotated[bool, typer.Option("--raw", help="Write the mail's own bytes, where they were kept.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many, the newest.")]


class NotKept(TerminalError):
    """Only mails that could not be read in full are kept byte by byte."""


def messages(status: Status = None, limit: Limit = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the messages, newest first."""
    if status is not None and status not in STATES:
        raise InvalidInput(f"--status: there is no state {status}; one of {', '.join(STATES)}")
    rows = run_async(_messages(Settings.load(), status, limit, data_dir))
    if as_json:
        print_json(rows)
        return
    columns = ("run", "status", "hold", "from", "answer to", "subject", "received", "notes")
    print_table(
        "messages",
        columns,
        [
            (
                r["run"],
                r["status"],
                held(r),
                author(r),
                r["answer_to"],
                r["subject"],
                when(r["received_at"]),
                notes(r),
            )
            for r in rows
        ],
    )


def author(row: dict[str, Any]) -> str:
    """Who wrote: with the address only where it looks other than the one that an answer goes to."""
    sender, address = row["from"] or "", row["answer_to"]
    return str(sender.removesuffix(f" <{address}>")) if address else str(sender)


def notes(row: dict[str, Any]) -> str:
    """What a person should know of a message beside its state: what failed, why it was put away, what is odd."""
    put_away = row["automated"] or row["archive_reason"] or _threat(row)
    several = len((row.get("classification") or {}).get("asks") or ())
    asks = f"asks for {several} things" if several and row["status"] not in ("sent", "rejected", "archived") else None
    odd = [_dated(row["date"]) if one == DATE_OFF else one for one in (row["remarks"] or ())[:2]]
    return "; ".join(str(note) for note in (row["error_message"], put_away, asks, *odd) if note)


def _threat(row: dict[str, Any]) -> str | None:
    """What the scan held a message for: the surest of its findings."""
    found = (row["security_flags"] or {}).get("findings") if row["status"] == "quarantined" else None
    surest = max(found, key=lambda f: float(f["confidence"]), default=None) if found else None
    return f"{surest['kind']}: {surest['name']}" if surest else None


def _dated(date: str | None) -> str:
    return f"dated {date[:10]}" if date else DATE_OFF


async def _messages(
    settings: Settings, status: str | None, limit: int | None, data_dir: Path | None
) -> list[dict[str, Any]]:
    async with looked_at(settings, "messages", data_dir) as installation:
        async with caught_up(installation) as models:
            with suppress(NoReadModels):  # nothing was ever walked here
                return await models.messages(tenant=settings.tenant, status=status, limit=limit)
    return []


def actions(
    run: RunId, agent: Agent = "inbox", by: Actor = None, data_dir: DataDir = None, as_json: Json = False
) -> None:
    """List every attempt at every step of a run, in order. Who looked is recorded."""
    rows = run_async(_actions(Settings.load(), run, agent, actor_name(by), data_dir))
    if as_json:
        print_json(rows)
        return
    columns = ("action", "step", "status", "attempt", "failures", "ms", "model", "began", "error")
    print_table(
        f"actions of {run}",
        columns,
        [
            (r["action"], titled(r["step"], r["branch"]), r["status"], r["attempt"], r["retry_count"], r["duration_ms"], r["model_used"],
             when(r["started_at"]), r["error_message"])
            for r in rows
        ],
    )  # fmt: skip


async def _actions(settings: Settings, run: str, agent: str, actor: str, data_dir: Path | None) -> list[dict[str, Any]]:
    async with looked_at(settings, "actions", data_dir) as installation:
        key = await find_run(installation, run, agent)
        async with caught_up(installation) as models:
            rows = await models.actions(key.run, agent=key.agent, tenant=key.tenant)
        if rows:
            await _note(installation, key, actor, "actions")
        return rows


async def _note(installation: Installation, key: RunKey, actor: str, what: str) -> None:
    wiring = installation.wiring
    await note_access(wiring.notes, wiring.clock, key, actor=actor, what=what)


def show(
    run: RunId,
    agent: Agent = "inbox",
    raw: Raw = False,
    by: Actor = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show a run's whole history, one entry an event. Who looked is recorded."""
    if raw:
        sys.stdout.buffer.write(run_async(_raw(Settings.load(), run, agent, actor_name(by), data_dir)))
        return
    entries = run_async(_show(Settings.load(), run, agent, actor_name(by), data_dir))
    if as_json:
        print_json(entries)
        return
    for name, text in _head(entries):
        out.print(f"{name:<10}{shown(text, marks=out.is_terminal)}", markup=False)
    rows = [(e.seq, f"{e.version}.{e.index}", when(e.at), e.type, _brief(e.data)) for e in entries]
    print_table(f"history of {run}", ("seq", "event", "at", "type", "data"), rows)


async def _show(settings: Settings, run: str, agent: str, actor: str, data_dir: Path | None) -> list[Any]:
    async with looked_at(settings, "show", data_dir) as installation:
        key = await find_run(installation, run, agent)
        entries = (await read_history(installation.wiring.state, Codec(), key))[1]
        await _note(installation, key, actor, "history")
        return entries


async def _raw(settings: Settings, run: str, agent: str, actor: str, data_dir: Path | None) -> bytes:
    async with looked_at(settings, "show", data_dir) as installation:
        key = await find_run(installation, run, agent)
        entries = (await read_history(installation.wiring.state, Codec(), key))[1]
        payload: dict[str, Any] = next((e.data["payload"] for e in entries if e.type == "EventPublished"), {})
        kept = (payload.get("objects") or {}).get(RAW)
        if kept is None:
            raise NotKept(f"the bytes of {key.run} were not kept: its history says all that they held")
        await _note(installation, key, actor, "raw")
        return await installation.wiring.objects.get(kept["name"])


def _head(entries: list[Entry]) -> list[tuple[str, str]]:
    """Who wrote, whom an answer would go to, and what is odd about it, as far as the history says so."""
    found: dict[str, Any] = {}
    for entry in entries:
        found.update(entry.data.get("fields") or {})
        if entry.type == "EventPublished" and "from" not in found:
            payload = entry.data.get("payload")
            found.update(
                {k: payload[k] for k in ("from", "subject") if k in payload} if isinstance(payload, dict) else {}
            )
    names = {"from": "from", "answer_to": "answer to", "subject": "subject", "automated": "automated"}
    lines = [(title, str(found[name])) for name, title in names.items() if found.get(name)]
    asks = (found.get("classification") or {}).get("asks") or ()
    lines += [(f"asks [{n}]", str(title)) for n, title in enumerate(asks, 1)]
    lines += _decisions(entries)
    return lines + [("remark", str(remark)) for remark in found.get("remarks") or ()]


def _decisions(entries: list[Entry]) -> list[tuple[str, str]]:
    """Every decision on the reply with its reason, in order: the gates', and people's."""
    found: list[tuple[str, str]] = []
    for entry in entries:
        data = entry.data
        if (routed := (data.get("fields") or {}).get("agent_decision")) is not None:
            gate = f" ({routed['gate']})" if routed.get("gate") else ""
            found.append(("gates", f"{routed['decision']}: {routed['reason']}{gate}"))
        if entry.type == "ApprovalDecided":
            found.append(("decided", f"{data['decision']} by {data['by']}{_because(data.get('reason'))}"))
        elif entry.type == "ApprovalRevoked" and data["reason"] not in ("left", "closed", "asked_anew"):
            found.append(("revoked", f"approval {data['approval']}{_because(data['reason'])}"))
        elif entry.type == "Transitioned" and (back := (data.get("fields") or {}).get("cancel_reason")) is not None:
            found.append(("came back", str(back)))
    return found


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


def _brief(data: dict[str, Any]) -> str:
    text = msgspec.json.encode(data).decode()
    return text if len(text) <= 160 else text[:159] + "…"


def why(run: RunId, agent: Agent = "inbox", data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say what a run does next, or who or what has to act before it can move."""
    answer = run_async(_why(Settings.load(), run, agent, data_dir))
    if as_json:
        print_json(answer)
        return
    out.print(f"run    {answer['run']}", markup=False)
    out.print(f"state  {answer['state']}", markup=False)
    held = answer["hold"]
    reason = f" ({held['reason']})" if held["reason"] else ""
    out.print(f"hold   {held['kind']}{reason}", markup=False)
    out.print(f"next   {answer['next_move']}", markup=False)
    if answer["because"]:
        out.print(f"since  {answer['because']}", markup=False)
    if held["until"] is not None:
        out.print(f"until  {when(held['until'])}", markup=False)
    if answer["error"]:
        out.print(f"error  {answer['error']}", markup=False)
    for line in passed_over_lines(msgspec.convert(answer["passed_over"], tuple[PassedOver, ...])):
        out.print(line, markup=False, soft_wrap=True)
    for request in answer["requests"]:
        if request["agent"]:
            out.print(
                f"asks   {request['event']} {request['name']}, {_handed_on(request)}", markup=False, soft_wrap=True
            )
    for line in ways_out(answer["run"], answer["agent"], msgspec.convert(answer, Why)):
        out.print(line, markup=False, soft_wrap=True)
    for step, types in answer["missing"].items():
        out.print(f"lacks  {step}: {' and '.join(types)}", markup=False)
    for step, text in answer["preconditions"].items():
        out.print(f"waits  {step}: {text}", markup=False)
    for step in answer["limits"]:
        out.print(f"limit  {step} was executed as often as it may be", markup=False)


def _handed_on(request: dict[str, Any]) -> str:
    """Whether the other agent's run is there."""
    run = f"run {request['run']}"
    if request["begun"]:
        return f"agent {request['agent']} works on it: {run}"
    return (
        f"agent {request['agent']} has not begun it ({run}): no walker carries that agent, or its start is on its way"
    )


async def _why(settings: Settings, run: str, agent: str, data_dir: Path | None) -> dict[str, Any]:
    async with looked_at(settings, "why", data_dir) as installation:
        key = await find_run(installation, run, agent)
        wiring = installation.wiring
        dead = await last_given_up(wiring.notes, key)
        try:
            folded, _ = await read_history(wiring.state, Codec(), key)
        except UnknownRun as error:
            if dead is None:
                raise
            raise UnknownRun(f"{error}; its {dead.verb} ({dead.command}) stands in DEAD: {dead.reason}") from error
        named = [on_grid(settings, load_agent(agent))] if is_class(agent) else []
        carried = [*named, mail_agent(settings)[0], *own_agents(settings)]
        definition = next((d for d in carried if d.engine.agent == folded.agent), carried[0])
        if folded.agent != definition.engine.agent:
            raise TerminalError(
                f"agent {folded.agent} is not known here: say --agent MODULE:AGENT, or name it in WAYBOOK_AGENTS"
            )
        own = definition.engine.carries(folded.definition)
        elsewhere = not own and await wiring.commands.is_taken(lane_consumer(folded.definition).name)
        scheduler = bool(folded.timers) and await NatsTimers(wiring.connection).is_served()
        answer = msgspec.to_builtins(
            explain(definition.engine, folded, scheduler=scheduler, elsewhere=elsewhere, dead=dead)
        )
        for request in answer["requests"]:
            if request["agent"] is not None:
                child = RunKey(key.tenant, request["agent"], request["run"])
                request["begun"] = await wiring.state.tail(state_subject(child)) is not None
        return {"run": key.run, "agent": key.agent, "definition": folded.definition, **answer}
