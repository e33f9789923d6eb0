"""`waybook sender`: what is known of one sender, and what a person says of them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from waybook.cli.giving import WAIT, Actor, CommandId, Given, Patience, Reason, actor_name, giving, report
from waybook.cli.options import DataDir, Json
from waybook.cli.output import out, print_json, when
from waybook.cli.running import run_async
from waybook.engine.aggregates.keys import sender_key
from waybook.engine.aggregates.sender import Sender, sender_of
from waybook.events.codec import Codec
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.installation import looked_at
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.aggregates import read_aggregate
from waybook.services.reading.models import last_position

sender_app = typer.Typer(help="One sender: blocked or read, trusted or not.", no_args_is_help=True)

Address = Annotated[str, typer.Argument(metavar="ADDRESS")]
Category = Annotated[str, typer.Argument(metavar="CATEGORY", help="support, sales, billing, ...")]


@sender_app.command("show")
def show(address: Address, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say what is known of a sender."""
    known = run_async(_sender(Settings.load(), _address(address), data_dir))
    if as_json:
        print_json(known)
        return
    block = known.block
    by = f", by {block.by} at {when(block.at)}" if block.by is not None else ""
    why = f" ({block.reason})" if block.reason else ""
    out.print(f"{'blocked' if block.on else 'not blocked'}{by}{why}", markup=False)
    for category, matched in sorted(known.matched.items()):
        out.print(f"{matched} drafts about {category} were let go as the gates would have", markup=False)
    for category, distrust in sorted(known.distrust.items()):
        text = f"nothing about {category} leaves unattended: {distrust.reason or 'no reason given'}"
        about = f", run {distrust.run}" if distrust.run else ""
        out.print(f"{text} ({distrust.by} at {when(distrust.at)}{about})", markup=False)


@sender_app.command("block")
def block(
    address: Address, reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Put away unread what this sender sends from now on."""
    given = _give(address, "block", {"on": True, "reason": reason}, by, command_id, wait, data_dir)
    report(given, f"{address} is blocked", as_json=as_json)


@sender_app.command("unblock")
def unblock(
    address: Address, reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Read this sender's mails again."""
    given = _give(address, "block", {"on": False, "reason": reason}, by, command_id, wait, data_dir)
    report(given, f"{address} is read again", as_json=as_json)


@sender_app.command("trust")
def trust(
    address: Address, category: Category, reason: Reason = None, by: Actor = None, command_id: CommandId = None,
    wait: Patience = WAIT, data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Let replies about a category leave for this sender as the gates say."""
    payload = {"category": category, "trusted": True, "reason": reason}
    given = _give(address, "trust", payload, by, command_id, wait, data_dir)
    report(given, f"{address} is trusted about {category}", as_json=as_json)


@sender_app.command("distrust")
def distrust(
    address: Address, category: Category, reason: Reason = None, by: Actor = None, command_id: CommandId = None,
    wait: Patience = WAIT, data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Have a person decide on every reply about a category to this sender."""
    payload = {"category": category, "trusted": False, "reason": reason}
    given = _give(address, "trust", payload, by, command_id, wait, data_dir)
    report(given, f"a person decides on replies about {category} to {address}", as_json=as_json)


def _address(given: str) -> str:
    if "@" not in given or given != given.strip():
        raise InvalidInput(f"{given!r} is no address")
    return given


def _give(
    address: str, verb: str, payload: dict[str, Any], by: str | None, command_id: str | None, wait: float,
    data_dir: Path | None,
) -> Given:  # fmt: skip
    return run_async(
        _given(Settings.load(), _address(address), verb, payload, actor_name(by), command_id, wait, data_dir)
    )


async def _given(
    settings: Settings,
    address: str,
    verb: str,
    payload: dict[str, Any],
    actor: str,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
) -> Given:
    key = sender_key(settings.tenant, address)
    async with giving(settings, verb, data_dir, wait) as (_, client):
        answer = await client.give(key, verb, payload, actor=actor, command=command_id)
        return Given(key, answer, {"by": actor, "sender": address})


async def _sender(settings: Settings, address: str, data_dir: Path | None) -> Sender:
    async with looked_at(settings, "sender", data_dir) as installation:
        if not (await last_position(installation.wiring)).sequence:
            return Sender()
        key = sender_key(settings.tenant, address)
        return sender_of(await read_aggregate(installation.wiring.state, Codec(), key))
