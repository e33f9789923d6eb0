"""`waybook kill-switch`, `waybook policy` and `waybook grants`: what holds for all runs of a tenant."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from waybook.cli.giving import WAIT, Actor, CommandId, Given, Patience, Reason, actor_name, giving, report
from waybook.cli.options import DataDir, Json
from waybook.cli.output import out, print_json, print_table, when
from waybook.cli.running import run_async
from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.keys import category_key, grants_key, policy_key
from waybook.engine.aggregates.policy import Policy
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RunKey
from waybook.inbox.breaker import Breaker
from waybook.services.bootstrap.installation import looked_at
from waybook.services.bootstrap.mail_brakes import mail_brakes
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.aggregates import read_grants, read_policy
from waybook.services.reading.models import last_position

kill_switch_app = typer.Typer(help="Stop every send that has not begun, or let them go on.", no_args_is_help=True)
policy_app = typer.Typer(help="The values by which decisions are made; a change takes given approvals back.")
grants_app = typer.Typer(help="Who may decide what. Before the first grant everybody may.")

Values = Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="VALUE is JSON, or text as it stands.")]
Keys = Annotated[list[str], typer.Argument(metavar="KEY...")]
Person = Annotated[str, typer.Argument(metavar="PERSON")]
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="WORD...", help="decide, decide:ACTION, kill-switch, policy, grants, thread, senders, or *."
    ),
]


@kill_switch_app.command("on")
def switch_on(
    reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Stop every send that has not begun, whoever approved it. Drafting goes on."""
    payload = {"on": True, "reason": reason}
    given = _give("kill-switch", payload, by, command_id, wait, data_dir)
    report(given, "the kill switch is on: nothing is sent", as_json=as_json)


@kill_switch_app.command("off")
def switch_off(
    reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Let sends go on."""
    payload = {"on": False, "reason": reason}
    given = _give("kill-switch", payload, by, command_id, wait, data_dir)
    report(given, "the kill switch is off", as_json=as_json)


@kill_switch_app.command("status")
def switch_status(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say whether it is on, who turned it last, and why."""
    switch = run_async(_policy(Settings.load(), data_dir)).kill_switch
    if as_json:
        print_json(switch)
        return
    by = f", by {switch.by} at {when(switch.at)}" if switch.by is not None else ""
    why = f" ({switch.reason})" if switch.reason else ""
    out.print(f"the kill switch is {'on' if switch.on else 'off'}{by}{why}", markup=False)


@policy_app.callback(invoke_without_command=True)
def policy(context: typer.Context, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show the policy, with how the breaker stands and what models cost today."""
    if context.invoked_subcommand is not None:
        return
    settings = Settings.load()
    found, stands, spent = run_async(_standing(settings, data_dir))
    budget = settings.spend.daily
    if as_json:
        values = {"version": found.version, "values": found.values, "kill_switch": found.kill_switch}
        print_json({**values, "breaker": stands, "spend": {"today": spent, "daily": budget}})
        return
    limit = f" of {budget:g}" if budget is not None else ", no budget"
    out.print(f"breaker {stands.text}; models cost {spent:g}{limit} today", markup=False)
    rows = [(key, msgspec.json.encode(value).decode()) for key, value in sorted(found.values.items())]
    print_table(f"policy, version {found.version}", ("key", "value"), rows)


@policy_app.command("set")
def policy_set(
    values: Values, reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Set values; approvals that were given before and are not used have to be given anew."""
    payload = {"values": dict(_pair(one) for one in values), "reason": reason}
    report(_give("policy", payload, by, command_id, wait, data_dir), "the policy was changed", as_json=as_json)


@policy_app.command("unset")
def policy_unset(
    keys: Keys, reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Take values away."""
    payload: dict[str, Any] = {"values": dict.fromkeys(keys), "reason": reason}
    report(_give("policy", payload, by, command_id, wait, data_dir), "the policy was changed", as_json=as_json)


@policy_app.command("loosen")
def policy_loosen(
    category: Annotated[str, typer.Argument(metavar="CATEGORY", help="support, sales, billing, ...")],
    reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Take back what refusals of people raised a category's threshold by: it is the settings' again."""
    settings = Settings.load()
    key, payload = category_key(settings.tenant, category), {"level": 0, "reason": reason}
    given = run_async(_given(settings, key, "threshold", payload, actor_name(by), command_id, wait, data_dir))
    report(given, f"the threshold of {category} is what the settings say", as_json=as_json)


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidInput(f"{text!r} is no KEY=VALUE")
    try:
        return key, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return key, value


@grants_app.callback(invoke_without_command=True)
def grants(context: typer.Context, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show who may decide what."""
    if context.invoked_subcommand is not None:
        return
    found = run_async(_grants(Settings.load(), data_dir))
    if as_json:
        print_json(found)
        return
    if found.version == 0:
        out.print("nothing was granted yet: whoever can give commands may do everything", markup=False)
        return
    rows = [(person, " ".join(may)) for person, may in sorted(found.people.items())]
    print_table(f"grants, version {found.version}", ("person", "may"), rows)


@grants_app.command("set")
def grants_set(
    person: Person, words: Words, reason: Reason = None, by: Actor = None, command_id: CommandId = None,
    wait: Patience = WAIT, data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Say all that a person may decide from now on."""
    payload = {"person": person, "may": words, "reason": reason}
    report(_give("grants", payload, by, command_id, wait, data_dir), f"{person} may {' '.join(words)}", as_json=as_json)


@grants_app.command("remove")
def grants_remove(
    person: Person, reason: Reason = None, by: Actor = None, command_id: CommandId = None, wait: Patience = WAIT,
    data_dir: DataDir = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Take every grant of a person away; approvals that they gave and that are not used do not hold any more."""
    payload: dict[str, Any] = {"person": person, "may": [], "reason": reason}
    report(_give("grants", payload, by, command_id, wait, data_dir), f"{person} may nothing any more", as_json=as_json)


_KEYS = {"kill-switch": policy_key, "policy": policy_key, "grants": grants_key}


def _give(
    verb: str, payload: dict[str, Any], by: str | None, command_id: str | None, wait: float, data_dir: Path | None
) -> Given:
    settings = Settings.load()
    key = _KEYS[verb](settings.tenant)
    return run_async(_given(settings, key, verb, payload, actor_name(by), command_id, wait, data_dir))


async def _given(
    settings: Settings,
    key: RunKey,
    verb: str,
    payload: dict[str, Any],
    actor: str,
    command_id: str | None,
    wait: float,
    data_dir: Path | None,
) -> Given:
    async with giving(settings, verb, data_dir, wait) as (_, client):
        return Given(key, await client.give(key, verb, payload, actor=actor, command=command_id), {"by": actor})


async def _policy(settings: Settings, data_dir: Path | None) -> Policy:
    async with looked_at(settings, "policy", data_dir) as installation:
        if not (await last_position(installation.wiring)).sequence:
            return Policy()  # nothing was ever stored here
        return await read_policy(installation.wiring.state, settings.tenant)


async def _standing(settings: Settings, data_dir: Path | None) -> tuple[Policy, Breaker, float]:
    async with looked_at(settings, "policy", data_dir) as installation:
        wiring = installation.wiring
        if not (await last_position(wiring)).sequence:
            return Policy(), Breaker(), 0.0
        brakes = mail_brakes(settings, wiring.state, wiring.clock, wiring.snapshots, plugins=False)
        now = wiring.clock.now()
        policy = await read_policy(wiring.state, settings.tenant)
        return policy, await brakes.breaker(now), await brakes.spent(now)


async def _grants(settings: Settings, data_dir: Path | None) -> Grants:
    async with looked_at(settings, "grants", data_dir) as installation:
        if not (await last_position(installation.wiring)).sequence:
            return Grants()
        return await read_grants(installation.wiring.state, settings.tenant)
